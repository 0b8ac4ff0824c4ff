package stepping_test

import (
	"fmt"

	"wpptrace/query/querytest"
	"wpptrace/query/stepping"
)

func Example() {
	s := querytest.Values() // as store.ReadFile returns it
	x, err := stepping.New(s, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, way := range []stepping.Way{stepping.Forward, stepping.Back} {
		if _, err := x.Into(way); err != nil {
			fmt.Println(err)
			return
		}
		p, _ := x.Place()
		fmt.Println(s.Files[p.Span.File], p.Span.Line)
	}
	// Output:
	// src/clip.c 3
	// src/clip.c 2
}
