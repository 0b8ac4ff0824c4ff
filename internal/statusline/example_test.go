package statusline_test

import (
	"fmt"
	"os"
	"time"

	"wpptrace/internal/statusline"
)

func ExampleLine() {
	line := statusline.New(os.Stdout, false)
	line.Show(func(time.Duration) string { return "shown on a terminal alone" })
	fmt.Fprintln(line, "a message")
	line.Clear()
	// Output: a message
}
