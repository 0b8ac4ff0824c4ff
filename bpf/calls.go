package bpf

import (
	"fmt"
	"math/bits"
)

// MaxLibraries is how many images the program knows besides the executable.
const MaxLibraries = int(TracerLibraryTableLIBRARIES_MAX)

// A CallTable lays calls out as the BPF program looks them up: by open addressing.
type CallTable struct {
	Entries []TracerCall
	Shift   uint32 // gives the first entry of an address
}

// A table is made twice as large, from 32 to 64 bytes a call, until every call has its place, and
// no more often than that.
const mostDoublings = 2

// NewCallTable lays out calls, whose addresses are not 0 and all different, and leaves room for
// more where they are fewer than room. It takes 256 bytes a call at most, and 256 more; that there
// is no such table is an error.
func NewCallTable(calls []TracerCall, room int) (*CallTable, error) {
	shift := 31 - uint32(bits.Len(uint(max(len(calls), room))))
	for range 1 + mostDoublings {
		t := &CallTable{make([]TracerCall, 1<<(32-shift)+uint32(TracerCallTableCALL_PROBES)), shift}
		if _, err := t.Add(calls); err == nil {
			return t, nil
		}
		shift--
	}
	return nil, tooClose(len(calls))
}

// Add adds calls, and returns the indices of their entries. After an error the table is of no use.
func (t *CallTable) Add(calls []TracerCall) (entries []uint32, err error) {
	const probes = uint32(TracerCallTableCALL_PROBES)
	entries = make([]uint32, 0, len(calls))
next:
	for _, c := range calls {
		first := uint32(c.Address) * uint32(TracerCallTableCALL_MULTIPLIER) >> t.Shift
		for i := first; i < first+probes; i++ {
			if t.Entries[i].Address == 0 {
				t.Entries[i] = c
				entries = append(entries, i)
				continue next
			}
		}
		return nil, tooClose(len(calls))
	}
	return entries, nil
}

// Taken lists the indices of the entries that hold calls.
func (t *CallTable) Taken() (entries []uint32) {
	for i := range t.Entries {
		if t.Entries[i].Address != 0 {
			entries = append(entries, uint32(i))
		}
	}
	return entries
}

func tooClose(calls int) error {
	return fmt.Errorf("lay out the return addresses of %d calls: more than %d that are close by "+
		"the table's hash", calls, TracerCallTableCALL_PROBES)
}

// MakeCall returns the entry of a call: its return address and the depth of its routine's frame,
// bytes; whether an event of the routine comes before it; and the return address of the one call
// that enters the routine, 0 if there may be several.
func MakeCall(address uint64, depth int, reported bool, caller uint64) TracerCall {
	c := TracerCall{Address: address,
		Info: uint32(depth)<<TracerCallBitsCALL_DEPTH_SHIFT | uint32(TracerCallBitsCALL_KNOWN)}
	if reported {
		c.Info |= uint32(TracerCallBitsCALL_REPORTED)
	}
	if by := int64(caller - address); caller > 0 && by == int64(int32(by)) {
		c.Caller = int32(by)
	}
	return c
}

// NextCall is what a site has of the call that comes next: its link-time return address, and the
// depth of its routine's frame, bytes. It is 0, not known, for depths that no compiler makes.
func NextCall(ra uint64, depth int) uint64 {
	const shift = TracerCallingCALLING_SHIFT
	if ra>>shift > 0 || depth%8 != 0 || depth>>(64-shift+3) > 0 {
		return 0
	}
	return uint64(depth/8)<<shift | ra
}

// OnlyCaller is what a site has of the one call that enters its routine: the link-time return
// address, and whether an event of the caller comes before the call.
func OnlyCaller(ra uint64, reported bool) uint64 {
	if reported {
		return 1<<TracerCallingCALLING_SHIFT | ra
	}
	return ra
}
