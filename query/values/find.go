package values

import (
	"fmt"
	"strconv"
	"strings"

	"wpptrace/compress/wpp"
	"wpptrace/query/names"
)

// Find returns the instruction that ROUTINE+OFFSET stands for: the routine is named as everywhere,
// and the offset, in hex, counts bytes from its entry. It fails where there is none, or where
// several routines are named so.
func Find(s *wpp.Snapshot, at string) (Instruction, error) {
	plus := strings.LastIndexByte(at, '+')
	if plus < 0 {
		plus = len(at)
		at += "+0"
	}
	name := at[:plus]
	offset, err := strconv.ParseUint(strings.TrimPrefix(at[plus+1:], "0x"), 16, 64)
	if err != nil {
		return Instruction{}, fmt.Errorf("find instruction %s: %q is no offset in hex: give "+
			"ROUTINE+0xOFFSET", at, at[plus+1:])
	}
	routines, err := names.Of(s).Routines(name)
	switch {
	case err != nil:
		return Instruction{}, err
	case len(routines) > 1:
		return Instruction{}, fmt.Errorf("find instruction %s: %d routines are named so: give more "+
			"of the name", at, len(routines))
	}
	r := routines[0]
	addr := s.Routines[r].Entry + offset
	for i := range s.Routines[r].Blocks {
		b := &s.Routines[r].Blocks[i]
		begin := b.Addr
		for _, length := range b.Lengths {
			if begin == addr {
				return Instruction{r, addr}, nil
			}
			begin += uint64(length)
		}
	}
	return Instruction{}, fmt.Errorf("find instruction %s: none begins there: wpptrace dump --as "+
		"values prints addresses", at)
}
