package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"wpptrace/compress/wpp"
	"wpptrace/internal/text"
	"wpptrace/query/report"
	"wpptrace/query/rules"
)

// rulesHelp says what a rule may be.
const rulesHelp = `A RULE is one argument. A, B and C are paths:
` + namesHelp + `

A before B                       no B runs before an A has
every A followed by B            a B has run after the last A when the thread ends
every A followed by B before C   no C runs after an A before a B has
never A after B
A and B balanced                 each A has its B behind it, and each B its A; [within N]: at most N
                                 of A wait for theirs at a time (up to 1000000000)
never REGEX                      no stretch of a thread matches
always REGEX                     the paths that REGEX names, taken alone, are the beginning of what
                                 it matches, from the thread's beginning on

REGEX is paths with spaces between, . for any path, !A for any but A, !(A|B) for any but these, and
| * + ? {N} {N,M} ( ).

In a recording of wpptrace values, "never" and "every" may test values:

free(p)        free is called; p stands for its first argument, here and wherever it comes again
open(_,2)      its second argument is 2, its first any
malloc(n)=p    malloc has returned; p stands for its result
f(n>0)=-1      a comparison of a value with a number or a name: = != < > <= >=
f(n:4)         of a value that has 4 bytes, not 8: 1, 2, 4, 8
use(p)         memory is accessed by an address that is made of p, or at p
use(p,n)       any of the n bytes from p on are accessed

A, B and REGEX are then of calls alone: nothing counts but calls and returns of the routines that
are named, and accesses if it has use. These may be functions of libraries, as far as traced code
calls them. A negative number is also that of an int. Arguments are those that integers and pointers
are passed by in registers, six at most. What matches crosses no gap. A value that is not known
matches nothing: how often one would have decided is printed, and the rule is open.

Each thread is checked alone. Marks, which dump prints with #, are skipped, but no stretch of "never
REGEX" crosses one. Of a broken rule, the first stretch that breaks it is printed: where it begins,
and its paths in brackets, between those around them. The exit status is 4 if a rule is broken.

A rule that names what was not traced is unknown, unless a path ran that never was to run, or never
after another: then it is broken. A rule that is not kept only because a routine never ran is unmet,
not broken.

A rule is open, not broken, where what it lacks may have run unseen:
- after the recording, in a thread that had not ended by then, or that may not have: old snapshots
  do not say
- before the recording, in a thread that ran already
- in a #gap, where events were lost, or between windows; in a thread with gaps, what is not balanced
  is always open

The command is called rules because check looks at this machine, not at a recording.`

func rulesCommand() *cobra.Command {
	var asJSON bool
	var file string
	var tids []int
	c := &cobra.Command{
		Use:   "rules [FLAG...] [RULE...] SNAPSHOT",
		Short: "Check rules of order on a snapshot: what must run before, after or between what",
		Example: `  wpptrace rules 'init() before work()' x.wpp
  wpptrace rules 'lock() and unlock() balanced within 1' 'every open() followed by close()' x.wpp
  wpptrace rules 'never free() (!malloc())* use()' x.wpp   a regular expression
  wpptrace rules 'never free(p!=0) (!malloc()=p)* use(p)' x.wpp   with values
  wpptrace rules -f rules.txt --json x.wpp                 a rule a line; # begins a comment`,
		Long: rulesHelp,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("rules and a snapshot expected, not %s", text.Count(0, "argument"))
			}
			list, err := readRules(file)
			if err != nil {
				return err
			}
			list = append(list, args[:len(args)-1]...)
			if len(list) == 0 {
				return usagef("no rule: give one before the snapshot, or a file of them with -f")
			}
			for _, rule := range list {
				if err := rules.Validate(rule); err != nil {
					return usageError{notChecked(err, len(list))}
				}
			}
			s, _, err := readSnapshot(c, args[len(args)-1])
			if err != nil {
				return err
			}
			checked, err := rules.Check(s, list, tids...)
			printCaveats(c, s, list...)
			if err != nil {
				return notChecked(err, len(list))
			}
			printApart(c, s, tids)
			return printRules(c, s, checked, asJSON)
		},
	}
	c.Flags().StringVarP(&file, "file", "f", "", "read rules from `FILE`, one a line")
	c.Flags().IntSliceVar(&tids, "tid", nil, "only thread `TID` (repeatable)")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

func printRules(c *cobra.Command, s *wpp.Snapshot, checked *rules.Report, asJSON bool) error {
	write := report.WriteRules
	if asJSON {
		write = report.WriteRulesJSON
	}
	if err := write(c.OutOrStdout(), s, checked); err != nil {
		return err
	}
	for _, r := range checked.Rules {
		if r.Violations > 0 {
			return exitStatus(exitBroke)
		}
	}
	return nil
}

// notChecked adds to what is wrong with a rule that the others wait for it to be mended.
func notChecked(err error, rules int) error {
	if rules == 1 {
		return err
	}
	return fmt.Errorf("%w; none of the %d rules was checked", err, rules)
}

// readRules reads a rule a line; empty lines and those that begin with # are none.
func readRules(file string) (rules []string, err error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read rules: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			rules = append(rules, line)
		}
	}
	return rules, nil
}
