package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"time"

	"github.com/cilium/ebpf/features"
	"github.com/spf13/cobra"

	"wpptrace/internal/memory"
	"wpptrace/internal/text"
	"wpptrace/internal/top"
	"wpptrace/loader/guard"
	"wpptrace/loader/privilege"
	"wpptrace/query/names"
)

// The first thread does nothing but wait: the kernel gives it the signals of the process, and a
// thread that reads another process's memory may have to wait where none wakes it.
func init() { runtime.LockOSThread() }

func main() {
	guard.Main()
	top.Main()
	if err := privilege.Suspend(); err != nil {
		// until it is known what the command takes: withPowers
		fmt.Fprintf(os.Stderr, "wpptrace: %v\n", err)
		os.Exit(exitError)
	}
	_ = time.Local.String() // TZ may name a file, which is read now, as the user
	memory.KeepTo(memory.Wished)
	// asked for once, and printed where it is wanted
	privilege.Seeing(func() { _, _ = features.LinuxVersionCode() })
	status := make(chan int)
	go func() { status <- run(os.Args[1:], os.Stdout, os.Stderr) }()
	os.Exit(<-status)
}

// Exit statuses. A recording of a command returns the command's instead, where all went well.
const (
	exitError = 1
	exitUsage = 2
	exitLost  = 3 // data were lost, under --strict
	exitBroke = 4 // a rule is broken
)

// run is wpptrace: results go to stdout, everything else to stderr. It returns the exit status.
func run(args []string, stdout, stderr io.Writer) int {
	root := rootCommand(args...)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	c, err := execute(root)
	var status exitStatus
	var usage usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		return int(status)
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "wpptrace: %s; see %s --help\n", oneLine(err), c.CommandPath())
		return exitUsage
	}
	fmt.Fprintf(stderr, "wpptrace: %s\n", oneLine(err))
	return exitError
}

// oneLine is an error as it is printed: names that it holds, of files and of what is in them, may
// hold anything.
func oneLine(err error) string {
	text := errorText(err)
	return names.Printable(text)
}

// execute runs the command that the arguments name.
func execute(root *cobra.Command) (c *cobra.Command, err error) {
	c = root
	checkTopic(root)
	helped := checkHelp(root)
	c, err = root.ExecuteC()
	return c, cmp.Or(err, helped())
}

// checkHelp has helped return the error of writing help, which cobra only prints.
func checkHelp(root *cobra.Command) (helped func() error) {
	var err error
	help := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		var text bytes.Buffer
		out := c.OutOrStdout()
		c.SetOut(&text)
		help(c, args)
		if _, writeErr := out.Write(text.Bytes()); writeErr != nil {
			err = fmt.Errorf("write help: %w", writeErr)
		}
	})
	return func() error { return err }
}

// An exitStatus ends the program with that status: what there is to say has been said.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// A usageError is a command line that cannot be understood.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// commands make the commands that there are, by name.
var commands = map[string]func() *cobra.Command{
	"top": topCommand, "profile": profileCommand, "values": valuesCommand,
	"coverage": coverageCommand, "residual": residualCommand, "plan": planCommand,
	"check": checkCommand, "stat": statCommand, "hot": hotCommand, "path": pathCommand,
	"find": findCommand, "rules": rulesCommand, "order": orderCommand, "context": contextCommand,
	"diff": diffCommand, "dump": dumpCommand, "bounds": boundsCommand, "slice": sliceCommand,
	"watch": watchCommand, "step": stepCommand, "compress": compressCommand,
	"compact": compactCommand, "merge": mergeCommand,
}

// rootCommand is wpptrace with all its commands, or with the one alone that the first of some
// arguments names: the flags of all others take longer than it takes to answer some questions.
func rootCommand(args ...string) *cobra.Command {
	root := recordCommand()
	root.Version = version()
	root.SilenceErrors, root.SilenceUsage = true, true
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if word := c.Flags().Arg(0); word != "" && c == root {
			// a flag of the program that it may name
			return unknownCommand(c, word)
		}
		return flagError(err)
	})
	if len(args) > 0 && commands[args[0]] != nil {
		root.AddCommand(commands[args[0]]())
	} else {
		for _, command := range commands {
			root.AddCommand(command())
		}
	}
	root.AddCommand(taggedCommands...)
	completeValues(root)
	for _, c := range append(root.Commands(), root) {
		c.DisableFlagsInUseLine = true
		c.Flags().SortFlags = false
		c.SetHelpTemplate(helpTemplate)
		withPowers(c)
	}
	return root
}

// checkTopic has help fail of a command that there is not: cobra explains the first one then.
func checkTopic(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, err := root.Find([]string{"help"})
	if err != nil {
		panic(err) // it was made in the line above
	}
	help.Args = func(_ *cobra.Command, args []string) error {
		if found, _, err := root.Find(args); len(args) > 0 && (err != nil || found == root) {
			return usagef("no command %q to explain: wpptrace --help lists them", args[0])
		}
		return nil
	}
}

// taggedCommands are those of builds with a tag, which are not installed.
var taggedCommands []*cobra.Command

// helpTemplate shows examples before all that explains them.
const helpTemplate = `{{.Short}}

Examples:
{{.Example}}

Usage:
  {{.UseLine}}
{{- with .Long}}

{{.}}{{end}}
{{- if .HasAvailableSubCommands}}

Commands:{{range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}

wpptrace COMMAND --help explains each.{{end}}

Flags:
{{.LocalFlags.FlagUsagesWrapped 100}}`

// exactly makes a check of the number of arguments that says what is expected.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		if n == 0 && len(args) == 1 {
			if _, err := strconv.Atoi(args[0]); err == nil {
				return usagef("%s expected; a process is named by -p: -p %s", what, args[0])
			}
		}
		return usagef("%s expected, not %s", what, text.Count(len(args), "argument"))
	}
}
