package bpf

import "math/bits"

// mostCallProbes is CALL_PROBES of types.h.
const mostCallProbes = 16

// NewCallTable lays calls, whose addresses are not 0 and all different, out as the BPF program looks them up: by open addressing, with shift telling the
// first entry of an address. It takes 32 to 128 bytes a call.
func NewCallTable(calls []TracerCall) (table []TracerCall, shift uint32) {
	for shift = 31 - uint32(bits.Len(uint(len(calls)))); ; shift-- {
		if table, ok := layOut(calls, shift); ok {
			return table, shift
		}
	}
}

func layOut(calls []TracerCall, shift uint32) (table []TracerCall, ok bool) {
	table = make([]TracerCall, 1<<(32-shift)+mostCallProbes)
next:
	for _, c := range calls {
		first := uint32(c.Address) * 0x9e3779b1 >> shift
		for i := first; i < first+mostCallProbes; i++ {
			if table[i].Address == 0 {
				table[i] = c
				continue next
			}
		}
		return nil, false
	}
	return table, true
}
