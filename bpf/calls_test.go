//go:build linux && cgo

package bpf_test

import (
	"testing"

	"pgregory.net/rapid"

	"wpptrace/bpf"
	"wpptrace/bpf/usermode"
)

// Each call is found where the C looks for it, before an empty entry.
func TestCallTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		addresses := rapid.SliceOfNDistinct(rapid.Uint64Range(1, 1<<33), 0, 2000, rapid.ID).Draw(t, "addresses")
		var calls []bpf.TracerCall
		for i, a := range addresses {
			calls = append(calls, bpf.TracerCall{Address: a, Depth: uint32(i)})
		}
		table, shift := bpf.NewCallTable(calls)
		for _, c := range calls {
			if got := lookUp(table, c.Address, shift); got == nil || *got != c {
				t.Fatalf("%x: %v, want %v", c.Address, got, c)
			}
		}
	})
}

func lookUp(table []bpf.TracerCall, address uint64, shift uint32) *bpf.TracerCall {
	first := usermode.CallSlot(address, shift)
	for i := first; i < first+usermode.CallProbes && table[i].Address != 0; i++ {
		if table[i].Address == address {
			return &table[i]
		}
	}
	return nil
}
