package ppcompress

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"wpptrace/compress/ops"
	"wpptrace/compress/raw"
	"wpptrace/compress/spill"
	"wpptrace/compress/wpp"
)

// Symbols compresses bare symbols: little-endian numbers of 32 bits. The snapshot has one thread
// and one routine, called "symbols", of which path n is symbol n; no path enters or leaves it. What
// is cut off within a symbol is treated as by Trace, and so is memory.
func Symbols(r io.Reader, image string, rec *spill.Recording) (*wpp.Snapshot, error) {
	c := &bareSymbols{image: image}
	rec.AddOther(func() uint64 { return alphabetBytes(&c.alphabet) })
	rec.Begin(c.tables)
	thread := rec.Thread(0, "")
	err := readSymbols(r, func(symbols []uint32) error {
		for i, s := range symbols {
			symbols[i] = c.alphabet.Symbol(0, uint64(s))
			c.paths = max(c.paths, uint64(s)+1)
		}
		thread.AppendAll(symbols)
		return rec.Err()
	})
	if err != nil && !isTruncated(err) {
		return nil, err
	}
	thread.End()
	grammar, grammarErr := thread.Copy()()
	if grammarErr != nil {
		return nil, grammarErr
	}
	s := c.snapshot(0)
	s.Threads = []wpp.Thread{{Grammar: grammar, Ended: err == nil}}
	return s, err
}

// bareSymbols is the alphabet of bare symbols.
type bareSymbols struct {
	image    string
	alphabet ops.Symbols
	paths    uint64
}

// snapshot returns the tables, with the symbols from a number on.
func (c *bareSymbols) snapshot(from int) *wpp.Snapshot {
	s := &wpp.Snapshot{
		Images:   []wpp.Image{{Name: c.image}},
		Routines: []wpp.Routine{{Name: "symbols", Paths: c.paths}},
		Symbols:  make([]wpp.Symbol, 0, c.alphabet.Len()-from),
	}
	for i := from; i < c.alphabet.Len(); i++ {
		s.Symbols = append(s.Symbols,
			wpp.Symbol{Path: c.alphabet.Meaning(uint32(i)).Path, Start: ops.StartLoop,
				End: ops.EndLoop})
	}
	return s
}

func (c *bareSymbols) tables(from int) (to int, complete func() (*wpp.Snapshot, error)) {
	s := c.snapshot(from)
	return c.alphabet.Len(), func() (*wpp.Snapshot, error) { return s, nil }
}

// readSymbols reads symbols to the end and hands them on, some thousands at a time, in a slice that
// it uses again.
func readSymbols(r io.Reader, take func(symbols []uint32) error) error {
	const size = 4
	var buffer [1 << 16]byte
	symbols := make([]uint32, 0, len(buffer)/size)
	for at := int64(0); ; {
		n, err := io.ReadFull(r, buffer[:])
		symbols = symbols[:0]
		for b := buffer[:n]; len(b) >= size; b = b[size:] {
			symbols = append(symbols, binary.LittleEndian.Uint32(b))
		}
		if err := take(symbols); err != nil {
			return err
		}
		at += int64(n)
		switch {
		case (err == io.EOF || err == io.ErrUnexpectedEOF) && n%size == 0:
			return nil
		case err == io.EOF || err == io.ErrUnexpectedEOF:
			return fmt.Errorf("symbols end at byte %d, within one of %d bytes: %w", at, size,
				raw.ErrTruncated)
		case err != nil:
			return fmt.Errorf("read symbols at byte %d: %w", at, err)
		}
	}
}

func isTruncated(err error) bool { return errors.Is(err, raw.ErrTruncated) }
