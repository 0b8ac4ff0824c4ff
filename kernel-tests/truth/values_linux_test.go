package truth_test

import (
	"fmt"
	"testing"

	"wpptrace/kernel-tests/truth"
)

func TestX(t *testing.T) {
	tr := run(t, truth.Options{Path: "/tmp/tt", Values: true, FixedAddresses: true})
	for _, s := range tr.Threads[0].Values[:120] {
		fmt.Printf("%x w %v r", s.PC, s.Written)
		for _, m := range s.Reads { fmt.Printf(" %x=%x", m.Addr, m.Bytes) }
		fmt.Printf(" w")
		for _, m := range s.Writes { fmt.Printf(" %x=%x", m.Addr, m.Bytes) }
		fmt.Println(" before", s.Before)
	}
}
