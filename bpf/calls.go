package bpf

import (
	"fmt"
	"math/bits"
)

// A table is made twice as large, from 32 to 64 bytes a call, until every call has its place, and no more often than that.
const mostDoublings = 2

// NewCallTable lays calls, whose addresses are not 0 and all different, out as the BPF program looks them up: by open addressing, with shift telling the
// first entry of an address. It takes 256 bytes a call at most, and 256 more; that there is no such table is an error.
func NewCallTable(calls []TracerCall) (table []TracerCall, shift uint32, err error) {
	shift = 31 - uint32(bits.Len(uint(len(calls))))
	for range 1 + mostDoublings {
		if table, ok := layOut(calls, shift); ok {
			return table, shift, nil
		}
		shift--
	}
	return nil, 0, fmt.Errorf("lay out the return addresses of %d calls: more than %d that are close by the table's hash", len(calls), TracerCallTableCALL_PROBES)
}

func layOut(calls []TracerCall, shift uint32) (table []TracerCall, ok bool) {
	const probes = uint32(TracerCallTableCALL_PROBES)
	table = make([]TracerCall, 1<<(32-shift)+probes)
next:
	for _, c := range calls {
		first := uint32(c.Address) * uint32(TracerCallTableCALL_MULTIPLIER) >> shift
		for i := first; i < first+probes; i++ {
			if table[i].Address == 0 {
				table[i] = c
				continue next
			}
		}
		return nil, false
	}
	return table, true
}
