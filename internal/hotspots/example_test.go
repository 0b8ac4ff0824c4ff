package hotspots_test

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"wpptrace/internal/hotspots"
	"wpptrace/query/querytest"
)

// As wpptrace hot --callers main does.
func ExampleQuestion() {
	q := &hotspots.Question{Note: func(format string, args ...any) {}}
	flags := pflag.NewFlagSet("hot", pflag.ContinueOnError)
	q.Add(flags)
	if err := flags.Parse([]string{"--callers", "main"}); err != nil {
		fmt.Println(err)
	}
	if err := q.Check(nil); err != nil {
		fmt.Println(err)
	}
	if err := q.Write(os.Stdout, querytest.InlinedCompressor()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// main was called 1 time, by 1 caller
	//
	// COUNT    SHARE  CALLER        WHERE
	//     1  100.00%  (none known)
}
