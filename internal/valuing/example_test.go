package valuing_test

import (
	"fmt"
	"os"

	"wpptrace/compress/wpp"
	"wpptrace/internal/valuing"
)

// A snapshot of paths alone has nothing to answer of.
func ExampleQuestion() {
	q := valuing.Question{At: "main"}
	if wrong := q.Wrong(func(flag string) bool { return flag == "at" }); wrong != "" {
		fmt.Println(wrong)
	}
	s := &wpp.Snapshot{Routines: []wpp.Routine{{Name: "main", Symbol: "main"}}}
	fmt.Println(q.Asks(), q.Answer(os.Stdout, s, false, nil) != nil)
	// Output: true true
}
