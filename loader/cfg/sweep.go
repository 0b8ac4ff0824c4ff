package cfg

import (
	"fmt"
	"slices"
	"sort"
	"sync/atomic"

	"wpptrace/internal/parallel"
	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// A piece is one contiguous range of code, a frame description entry. Some pieces together make a
// routine.
type piece struct {
	*image.Range
	code        []byte
	first, last int // instructions [first, last) of recovery.insns
	parent      int // in the union-find forest of pieces (group.go)
	routine     int // index of the routine that the piece is part of
	symbol      string
	called      bool // by a direct call of its first instruction
	entered     bool // by a jump to its first instruction from another routine
	inTable     bool // a table of distances leads to it, as it seems
	// it jumps into another part of its routine: no linker has made it another's as well
	back    bool
	jumpers []int // other pieces that jump to it, at most two
}

// code is all that the linear sweep over the pieces finds. The slices after insns run parallel to
// it.
type code struct {
	pieces  []piece
	ends    []uint64 // of the pieces
	insns   []Insn
	target  []int32 // of a relative jump or call: the instruction that it goes to, or -1
	pieceOf []int32
}

// Limits of what is recovered, which takes about 200 bytes of memory for each instruction: a file
// with holes claims any number at no cost. They are variables for tests.
var (
	maxCode  = uint64(256 << 20) // bytes
	maxInsns = 1 << 25
)

// sweep decodes every piece from its start to its end. Bytes that do not decode are skipped:
// control flow that arrives there is noticed when blocks are built. Decoding depends on nothing but
// the address, so an instruction that control flow reaches is right whatever lies around it.
func sweep(im *image.Image) (*code, error) {
	c := &code{pieces: make([]piece, 0, len(im.Ranges)), ends: make([]uint64, 0, len(im.Ranges))}
	size := uint64(0)
	for i := range im.Ranges {
		r := &im.Ranges[i]
		b := im.Bytes(r.Lo, r.Hi)
		if r.Hi <= r.Lo || uint64(len(b)) < r.Hi-r.Lo {
			continue
		}
		if n := len(c.pieces); n > 0 && r.Lo < c.pieces[n-1].Hi {
			return nil, fmt.Errorf("code range %x-%x overlaps %x-%x", r.Lo, r.Hi, c.pieces[n-1].Lo,
				c.pieces[n-1].Hi)
		}
		c.pieces, c.ends = append(c.pieces,
			piece{Range: r, code: b, parent: len(c.pieces)}), append(c.ends, r.Hi)
		size += r.Hi - r.Lo
	}
	if size > maxCode {
		return nil, fmt.Errorf("%d MB of code: more than %d MB take too much memory", size>>20,
			maxCode>>20)
	}
	c.insns = make([]Insn, 0, size/bytesPerInsn)
	if !c.decode() {
		return nil, fmt.Errorf("more than %d instructions take too much memory", maxInsns)
	}
	c.target, c.pieceOf = make([]int32, len(c.insns)), make([]int32, len(c.insns))
	parallel.Each(len(c.pieces), func(p int) {
		for i := c.pieces[p].first; i < c.pieces[p].last; i++ {
			c.target[i], c.pieceOf[i] = -1, int32(p)
			if c.insns[i].Kind.IsRelative() {
				c.target[i] = int32(c.findFrom(&c.pieces[p], c.insns[i].target()))
			}
		}
	})
	return c, nil
}

// bytesPerInsn is a little below what compilers emit.
const bytesPerInsn = 4

// decode decodes all pieces, on all CPUs. It reports whether there are not too many instructions.
func (c *code) decode() bool {
	const (
		stretch = 64 // pieces that one CPU decodes at a time
		most    = 32 // stretches whose instructions are kept apart until they are put together
	)
	var total atomic.Int64
	buffers := make([][]Insn, most)
	for stretches := range slices.Chunk(slices.Collect(slices.Chunk(c.pieces, stretch)), most) {
		parallel.Each(len(stretches),
			func(i int) { buffers[i] = decodeAll(stretches[i], buffers[i][:0], &total) })
		if total.Load() > int64(maxInsns) {
			return false
		}
		c.add(stretches, buffers)
	}
	return true
}

// decodeAll decodes some pieces, the first of whose instructions is to be number 0 of the list that
// it appends to.
func decodeAll(pieces []piece, list []Insn, total *atomic.Int64) []Insn {
	size := 0
	for i := range pieces {
		size += len(pieces[i].code)
	}
	list = slices.Grow(list, size/bytesPerInsn)
	for i := range pieces {
		p := &pieces[i]
		p.first = len(list)
		list = p.decode(list, total)
		p.last = len(list)
	}
	return list
}

// add adds the instructions of some stretches of pieces, each of which counts its own.
func (c *code) add(stretches [][]piece, decoded [][]Insn) {
	before := make([]int, len(stretches)+1)
	before[0] = len(c.insns)
	for i := range stretches {
		before[i+1] = before[i] + len(decoded[i])
	}
	all := before[len(stretches)]
	c.insns = slices.Grow(c.insns, all-before[0])[:all]
	parallel.Each(len(stretches), func(i int) {
		copy(c.insns[before[i]:], decoded[i])
		for k := range stretches[i] {
			p := &stretches[i][k]
			p.first, p.last = before[i]+p.first, before[i]+p.last
		}
	})
}

// decode appends the piece's instructions to a list, unless there are more than maxInsns in all.
func (p *piece) decode(list []Insn, total *atomic.Int64) []Insn {
	counted := len(list)
	for at := 0; at < len(p.code); {
		if n := len(list) - counted; n >= 4096 {
			counted += n
			if total.Add(int64(n)) > int64(maxInsns) {
				return list
			}
		}
		in, ok := x86.Decode(p.code[at:])
		if !ok {
			at++
			continue
		}
		list = append(list, Insn{Addr: p.Lo + uint64(at), Inst: in})
		if bare, ok := x86.Unlocked(p.code[at:]); ok {
			// programs jump over the lock prefix where they know that they have one thread
			list = append(list, Insn{Addr: p.Lo + uint64(at+1), Inst: bare})
		}
		at += int(in.Len)
	}
	total.Add(int64(len(list) - counted))
	return list
}

// bytes returns the bytes of instruction i.
func (c *code) bytes(i int) []byte {
	p := &c.pieces[c.pieceOf[i]]
	at := c.insns[i].Addr - p.Lo
	return p.code[at : at+uint64(c.insns[i].Len)]
}

// findPiece returns the piece that covers addr, or -1.
func (c *code) findPiece(addr uint64) int {
	i := sort.Search(len(c.ends), func(i int) bool { return c.ends[i] > addr })
	if i < len(c.pieces) && c.pieces[i].Lo <= addr {
		return i
	}
	return -1
}

// find returns the instruction that begins at addr, or -1.
func (c *code) find(addr uint64) int {
	i := c.findPiece(addr)
	if i < 0 {
		return -1
	}
	return c.findIn(&c.pieces[i], addr)
}

// findFrom is find, at less cost where addr is in the piece that it is looked for from.
func (c *code) findFrom(p *piece, addr uint64) int {
	if p.Lo <= addr && addr < p.Hi {
		return c.findIn(p, addr)
	}
	return c.find(addr)
}

func (c *code) findIn(p *piece, addr uint64) int {
	// by hand: calls of a function that compares take half of the time that finding all jumps'
	// targets takes
	from, to := p.first, p.last
	for from < to {
		if middle := (from + to) / 2; c.insns[middle].Addr < addr {
			from = middle + 1
		} else {
			to = middle
		}
	}
	if from == p.last || c.insns[from].Addr != addr {
		return -1
	}
	return from
}

// effects are what instruction i does.
func (c *code) effects(i int) x86.Effects {
	return c.insns[i].Effects(c.bytes(i), c.insns[i].end())
}

// operands decodes the ModRM operands of instruction i.
func (c *code) operands(i int) (reg int8, rm x86.Operand, imm int) {
	return c.insns[i].Operands(c.bytes(i), c.insns[i].end())
}

func (q *Insn) end() uint64    { return q.Addr + uint64(q.Len) }
func (q *Insn) target() uint64 { return q.end() + uint64(q.Rel) }
