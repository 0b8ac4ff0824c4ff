package main

import (
	"github.com/spf13/cobra"

	"wpptrace/query"
	"wpptrace/query/report"
)

// completeValues has a shell complete the values of flags that take one of a few words. A value is
// completed as the name of a file otherwise.
func completeValues(root *cobra.Command) {
	forms := make([]cobra.Completion, 0, len(report.Forms()))
	for _, f := range report.Forms() {
		forms = append(forms, string(f))
	}
	for _, v := range []struct {
		command, flag string
		words         []cobra.Completion
		orFile        bool
	}{
		{"wpptrace", "on-overflow", []cobra.Completion{"gap", "stop"}, false},
		{"dump", "as", forms, false},
		{"stat", "csv", []cobra.Completion{"figure8", "figure9"}, false},
		{"hot", "cost", []cobra.Completion{string(query.Instructions), string(query.Executions)},
			true},
		{"diff", "cost", []cobra.Completion{string(query.Instructions), string(query.Executions)},
			false},
	} {
		rest := cobra.ShellCompDirectiveNoFileComp
		if v.orFile {
			rest = cobra.ShellCompDirectiveDefault
		}
		for _, c := range append(root.Commands(), root) {
			if c.Name() == v.command {
				if err := c.RegisterFlagCompletionFunc(v.flag,
					cobra.FixedCompletions(v.words, rest)); err != nil {
					panic(err) // there is no such flag: a test sees that
				}
			}
		}
	}
}
