package variables_test

import (
	"fmt"
	"log/slog"

	"wpptrace/internal/record/variables"
)

// A plan without images has no variables.
func ExampleTable() {
	table := variables.NewTable(slog.New(slog.DiscardHandler))
	fmt.Println(table.Section(nil) == nil)
	// Output: true
}
