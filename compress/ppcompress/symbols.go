package ppcompress

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"wpptrace/compress/ops"
	"wpptrace/compress/raw"
	"wpptrace/compress/sequitur"
	"wpptrace/compress/wpp"
)

// Symbols compresses bare symbols: little-endian numbers of 32 bits. The snapshot has one thread and one routine, called "symbols", of
// which path n is symbol n; no path enters or leaves it. What is cut off within a symbol is treated as by Trace.
func Symbols(r io.Reader, image string) (*wpp.Snapshot, error) {
	var alphabet ops.Symbols
	g := sequitur.NewFolding()
	err := readSymbols(r, func(symbols []uint32) {
		for i, s := range symbols {
			symbols[i] = alphabet.Symbol(0, uint64(s))
		}
		g.AppendAll(symbols)
	})
	if err != nil && !isTruncated(err) {
		return nil, err
	}
	s := &wpp.Snapshot{
		Images:   []wpp.Image{{Name: image}},
		Routines: []wpp.Routine{{Name: "symbols"}},
		Threads:  []wpp.Thread{{Grammar: wpp.FromSequitur(g)}},
	}
	for i := range alphabet.Len() {
		path := alphabet.Meaning(uint32(i)).Path
		s.Routines[0].Paths = max(s.Routines[0].Paths, path+1)
		s.Symbols = append(s.Symbols, wpp.Symbol{Path: path, Start: ops.StartLoop, End: ops.EndLoop})
	}
	return s, err
}

// readSymbols reads symbols to the end and hands them on, some thousands at a time, in a slice that it uses again.
func readSymbols(r io.Reader, take func(symbols []uint32)) error {
	const size = 4
	var buffer [1 << 16]byte
	symbols := make([]uint32, 0, len(buffer)/size)
	for at := int64(0); ; {
		n, err := io.ReadFull(r, buffer[:])
		symbols = symbols[:0]
		for b := buffer[:n]; len(b) >= size; b = b[size:] {
			symbols = append(symbols, binary.LittleEndian.Uint32(b))
		}
		take(symbols)
		at += int64(n)
		switch {
		case (err == io.EOF || err == io.ErrUnexpectedEOF) && n%size == 0:
			return nil
		case err == io.EOF || err == io.ErrUnexpectedEOF:
			return fmt.Errorf("symbols end at byte %d, within one of %d bytes: %w", at, size, raw.ErrTruncated)
		case err != nil:
			return fmt.Errorf("read symbols at byte %d: %w", at, err)
		}
	}
}

func isTruncated(err error) bool { return errors.Is(err, raw.ErrTruncated) }
