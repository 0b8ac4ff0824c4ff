//go:build linux && cgo

package bpf_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"wpptrace/bpf"
	"wpptrace/bpf/usermode"
)

// Each call is found where the C looks for it, before an empty entry.
func TestCallTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		addresses := rapid.SliceOfNDistinct(rapid.Uint64Range(1, 1<<33), 0, 2000, rapid.ID).Draw(t,
			"addresses")
		var calls []bpf.TracerCall
		for i, a := range addresses {
			calls = append(calls, bpf.MakeCall(a, i, false, 0))
		}
		table, err := bpf.NewCallTable(calls, 0)
		if err != nil {
			t.Fatal(err)
		}
		if most := max(len(calls), 1)*16 + usermode.CallProbes; len(table.Entries) > most {
			t.Fatalf("%d entries for %d calls, more than %d", len(table.Entries), len(calls), most)
		}
		for _, c := range calls {
			if got := lookUp(table, c.Address); got == nil || *got != c {
				t.Fatalf("%x: %v, want %v", c.Address, got, c)
			}
		}
	})
}

// Addresses that the hash does not distinguish are found as long as they fit behind one another;
// more of them are an error, and the table does not grow for them.
func TestCallTableCollisions(t *testing.T) {
	var calls []bpf.TracerCall
	for i := range uint64(usermode.CallProbes) {
		calls = append(calls, bpf.TracerCall{Address: i<<32 | 0x1139})
	}
	table, err := bpf.NewCallTable(calls, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range calls {
		if lookUp(table, c.Address) == nil {
			t.Errorf("%x is not found", c.Address)
		}
	}
	calls = append(calls, bpf.TracerCall{Address: usermode.CallProbes<<32 | 0x1139})
	if _, err := bpf.NewCallTable(calls, 0); err == nil || !strings.Contains(err.Error(),
		"lay out the return addresses of 17 calls") {
		t.Errorf("error %v", err)
	}
}

func lookUp(t *bpf.CallTable, address uint64) *bpf.TracerCall {
	table, first := t.Entries, usermode.CallSlot(address, t.Shift)
	for i := first; i < first+usermode.CallProbes && table[i].Address != 0; i++ {
		if table[i].Address == address {
			return &table[i]
		}
	}
	return nil
}
