package stream_test

import (
	"fmt"

	"wpptrace/query/internal/stream"
	"wpptrace/query/querytest"
)

func ExampleNew() {
	c := stream.New(querytest.TracedLoop().Threads[0].Grammar)
	c.Seek(2)
	for sym, ok := c.Previous(); ok; sym, ok = c.Previous() {
		fmt.Print(sym, " ")
	}
	// Output: 1 0
}

func ExampleRange() {
	for sym := range stream.Range(querytest.TracedLoop().Threads[0].Grammar, 1, 4, false) {
		fmt.Print(sym, " ")
	}
	// Output: 1 2 1
}
