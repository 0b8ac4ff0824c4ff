package values_test

import (
	"errors"
	"fmt"

	"wpptrace/compress/wpp"
	"wpptrace/query/values"
)

// A snapshot of paths alone has no values.
func ExampleCount() {
	s := &wpp.Snapshot{Threads: make([]wpp.Thread, 1)} // as store.ReadFile returns it
	_, err := values.Count(s)
	fmt.Println(errors.Is(err, values.ErrNone))
	// Output: true
}
