package coding

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"

	"github.com/klauspost/compress/zstd"

	"wpptrace/compress/sequitur"
)

// plainBlock is how many numbers are coded together, least significant bytes first: so each of
// their bytes fills a block of zstd, whose statistics are its own.
const plainBlock = 1 << 17

// plainBytes is the most that a number takes.
const plainBytes = 4

// EncodePlain writes a grammar as Encode does, but as it is: for one that hardly repeats itself, on
// which what Encode does is lost. It takes some 10 ns a symbol, and a byte of memory for each that
// it writes, 4 a symbol at most. It must have a start rule, and at most 2^32 rules and terminals.
func EncodePlain(bodies [][]uint32) []byte {
	symbols, terminals := 0, uint32(0)
	for _, body := range bodies {
		symbols += len(body)
		for _, v := range body {
			if !sequitur.IsRule(v) {
				terminals = max(terminals, v+1)
			}
		}
	}
	out := binary.AppendUvarint(nil, uint64(symbols))
	out = binary.AppendUvarint(out, uint64(len(bodies)))
	out = binary.AppendUvarint(out, uint64(terminals))
	out = slices.Grow(out, (symbols+len(bodies))*bits.Len32(terminals+uint32(len(bodies)))/8)
	w := newPlainWriter(out)
	for _, body := range bodies {
		w.put(uint32(len(body)))
	}
	w.flush()
	for _, body := range bodies {
		for _, v := range body {
			if sequitur.IsRule(v) {
				v = terminals + uint32(sequitur.RuleOf(v))
			}
			w.put(v)
		}
	}
	w.flush()
	return w.out
}

// A plainWriter writes numbers in blocks: a byte that says how many bytes a number has, the length
// of what follows, and the bytes, compressed.
type plainWriter struct {
	out     []byte
	numbers []uint32
	longest uint32
	columns []byte
	packed  []byte
	zstd    *zstd.Encoder
}

func newPlainWriter(out []byte) *plainWriter {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(plainBlock),
		zstd.WithAllLitEntropyCompression(true), zstd.WithEncoderCRC(false))
	if err != nil {
		panic("coding: " + err.Error()) // the options are wrong
	}
	return &plainWriter{out: out, zstd: encoder, numbers: make([]uint32, 0, plainBlock)}
}

func (w *plainWriter) put(v uint32) {
	w.numbers = append(w.numbers, v)
	w.longest |= v
	if len(w.numbers) == plainBlock {
		w.flush()
	}
}

func (w *plainWriter) flush() {
	if len(w.numbers) == 0 {
		return
	}
	size := (bits.Len32(w.longest) + 7) / 8
	w.columns = w.columns[:0]
	for b := range size {
		for _, v := range w.numbers {
			w.columns = append(w.columns, byte(v>>(8*b)))
		}
	}
	w.packed = w.zstd.EncodeAll(w.columns, w.packed[:0])
	w.out = append(w.out, byte(size))
	w.out = binary.AppendUvarint(w.out, uint64(len(w.packed)))
	w.out = append(w.out, w.packed...)
	w.numbers, w.longest = w.numbers[:0], 0
}

// DecodePlain reads what EncodePlain wrote. It refuses a grammar of more symbols or rules than may
// be left before it spends memory on them. What it returns may be no grammar: rules may not exist,
// be empty, be used by none, or derive themselves. It takes some 5 ns a symbol.
func DecodePlain(coded []byte, mostSymbols, mostRules uint64) ([][]uint32, error) {
	var counts [3]uint64 // symbols, rules, terminals
	for i := range counts {
		n := 0
		if counts[i], n = binary.Uvarint(coded); n <= 0 {
			return nil, errShort
		}
		coded = coded[n:]
	}
	symbols, rules, terminals := counts[0], counts[1], counts[2]
	switch {
	case symbols > mostSymbols:
		return nil, fmt.Errorf("coded grammar declares %d symbols, more than the %d that may be "+
			"left", symbols, mostSymbols)
	case rules > mostRules:
		return nil, fmt.Errorf("coded grammar declares %d rules, more than the %d that may be left",
			rules, mostRules)
	case rules == 0 || rules > symbols+1 || terminals > uint64(sequitur.MaxTerminal)+1:
		return nil, errSymbols
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(plainBytes*plainBlock))
	if err != nil {
		return nil, err
	}
	defer decoder.Close()
	r := plainReader{in: coded, zstd: decoder}
	lengths, err := r.numbers(rules, func(v uint32) uint32 { return v })
	if err != nil {
		return nil, err
	}
	all, err := r.numbers(symbols, func(v uint32) uint32 {
		if uint64(v) >= terminals {
			return sequitur.RuleSymbol(int(uint64(v) - terminals))
		}
		return v
	})
	if err != nil {
		return nil, err
	}
	if len(r.in) > 0 {
		return nil, errLong
	}
	return cut(all, lengths)
}

// cut parts the symbols of all bodies by their lengths.
func cut(all, lengths []uint32) ([][]uint32, error) {
	bodies := make([][]uint32, len(lengths))
	for i, n := range lengths {
		if uint64(n) > uint64(len(all)) {
			return nil, errSymbols
		}
		bodies[i], all = all[:n:n], all[n:]
	}
	if len(all) > 0 {
		return nil, errSymbols
	}
	return bodies, nil
}

// A plainReader is the decoder of what a plainWriter writes.
type plainReader struct {
	in      []byte
	columns []byte
	zstd    *zstd.Decoder
}

// numbers reads so many numbers. It takes no more memory than a block beyond what has been read.
func (r *plainReader) numbers(count uint64, from func(v uint32) uint32) ([]uint32, error) {
	var out []uint32
	if uint64(len(r.in))*2 > count { // else it is too good to be believed at once
		out = make([]uint32, 0, count)
	}
	for left := count; left > 0; left = count - uint64(len(out)) {
		n := int(min(left, plainBlock))
		columns, err := r.block(n)
		if err != nil {
			return nil, err
		}
		at := len(out)
		out = slices.Grow(out, n)[:at+n]
		block := out[at:]
		clear(block)
		for b := 0; len(columns) > 0; b, columns = b+1, columns[n:] {
			for i, c := range columns[:n] {
				block[i] |= uint32(c) << (8 * b)
			}
		}
		for i, v := range block {
			block[i] = from(v)
		}
	}
	return out, nil
}

// block reads the bytes of n numbers.
func (r *plainReader) block(n int) ([]byte, error) {
	if len(r.in) == 0 {
		return nil, errShort
	}
	size := int(r.in[0])
	packed, k := binary.Uvarint(r.in[1:])
	if k <= 0 || packed > uint64(len(r.in)-1-k) {
		return nil, errShort
	}
	var err error
	r.columns, err = r.zstd.DecodeAll(r.in[1+k:][:packed], r.columns[:0])
	r.in = r.in[1+k+int(packed):]
	switch {
	case err != nil:
		return nil, fmt.Errorf("coded grammar: %w", err)
	case size > plainBytes || len(r.columns) != size*n:
		return nil, errSymbols
	}
	return r.columns, nil
}
