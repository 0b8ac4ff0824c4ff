package report

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"wpptrace/compress/wpp"
)

// errNoSymbols refuses a snapshot that paths of several routines, or marks, are in: the numbers of
// its paths are not theirs alone.
var errNoSymbols = errors.New("these are no bare symbols: name a snapshot that wpptrace compress " +
	"--symbols has made")

// checkSymbols fails unless every symbol of a snapshot is a path of one routine whose number has 32
// bits.
func checkSymbols(s *wpp.Snapshot, threads []*wpp.Thread) error {
	if len(s.Routines) != 1 {
		return errNoSymbols
	}
	for i := range s.Symbols {
		if p := &s.Symbols[i]; p.IsMark || p.Path > math.MaxUint32 {
			return errNoSymbols
		}
	}
	if len(threads) != 1 {
		return fmt.Errorf("%d threads, where bare symbols are one stream: select a thread",
			len(threads))
	}
	return nil
}

func writeSymbols(out *bufio.Writer, s *wpp.Snapshot, t *wpp.Thread) error {
	for sym := range t.Grammar.Expand(0) {
		b := binary.LittleEndian.AppendUint32(out.AvailableBuffer(), uint32(s.Symbols[sym].Path))
		if _, err := out.Write(b); err != nil {
			return err
		}
	}
	return nil
}
