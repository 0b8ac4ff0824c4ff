package sweep

import (
	"fmt"
	"slices"
	"sync/atomic"

	"wpptrace/internal/parallel"
	"wpptrace/loader/cfg"
	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// A Piece is one contiguous range of code, a frame description entry. Some pieces together make a
// routine.
type Piece struct {
	*image.Range
	section     *image.Section
	First, Last int // instructions [First, Last) of Code.Insns
	Routine     int // index of the routine that the piece is part of
	Symbol      string
	rows        *[]image.Row // nil: they are read when they are asked for
	// of a survey: where its first instruction is, if any of it decodes
	begins   uint64
	parent   int32    // in the union-find forest of pieces (group.go)
	jumpedBy [2]int32 // the first other pieces that jump to it; -1: none
	Called   bool     // by a direct call of its first instruction
	Entered  bool     // by a jump to its first instruction from another routine
	InTable  bool     // a table of distances leads to it, as it seems
	// it jumps into another part of its routine: no linker has made it another's as well
	Back    bool
	decodes bool
}

// Rows returns the piece's unwind rows.
func (p *Piece) Rows() []image.Row {
	if p.rows == nil {
		return p.AppendRows(nil)
	}
	return *p.rows
}

// SetRows replaces them.
func (p *Piece) SetRows(rows []image.Row) { p.rows = &rows }

// Text returns the bytes of the piece, shared.
func (p *Piece) Text() []byte { return p.text(p.Lo, p.Hi) }

// text returns some of them.
func (p *Piece) text(lo, hi uint64) []byte {
	return p.section.Data[lo-p.section.Addr : hi-p.section.Addr : hi-p.section.Addr]
}

// textOf returns the bytes of an instruction of the piece.
func (p *Piece) textOf(q *cfg.Insn) []byte { return p.text(q.Addr, q.End()) }

// CFA returns the rule that holds before the instruction at pc.
func (p *Piece) CFA(pc uint64) image.CFA {
	if p.rows == nil && pc == p.Lo {
		return p.EntryCFA()
	}
	return image.RowAt(p.Rows(), pc).CFA
}

// jumpers is how many other pieces jump to it, two at most.
func (p *Piece) jumpers() (n int) {
	for n < len(p.jumpedBy) && p.jumpedBy[n] >= 0 {
		n++
	}
	return n
}

func (p *Piece) noteJumper(from int32) {
	if n := p.jumpers(); n < len(p.jumpedBy) && !slices.Contains(p.jumpedBy[:n], from) {
		p.jumpedBy[n] = from
	}
}

// Code is all that the linear sweep over the pieces finds. The slices after Insns run parallel to
// it. Only who makes routines of the pieces writes to these.
type Code struct {
	Pieces []Piece
	ends   []uint64 // of the pieces
	// by stretch of 1<<shift addresses from indexed on: the first piece that ends behind its
	// beginning
	index   []int32
	indexed uint64
	shift   uint
	Insns   []cfg.Insn
	Target  []int32 // of a relative jump or call: the instruction that it goes to, or -1
	PieceOf []int32
	survey  *Survey // nil: Insns has all
}

// Limits of what is recovered, which takes about 200 bytes of memory for each instruction: a file
// with holes claims any number at no cost. They are variables for tests.
var (
	maxCode  = uint64(256 << 20) // bytes
	maxInsns = 1 << 25
)

// Decode decodes every piece from its start to its end. Bytes that do not decode are skipped:
// control flow that arrives there is noticed when blocks are built. Decoding depends on nothing but
// the address, so an instruction that control flow reaches is right whatever lies around it.
func Decode(im *image.Image) (*Code, error) {
	c, err := newCode(im)
	if err != nil {
		return nil, err
	}
	size := uint64(0)
	for i := range c.Pieces {
		size += c.Pieces[i].Hi - c.Pieces[i].Lo
	}
	if size > maxCode {
		return nil, fmt.Errorf("%d MB of code: more than %d MB take too much memory", size>>20,
			maxCode>>20)
	}
	c.keepRows(func(int) bool { return true })
	c.Insns = make([]cfg.Insn, 0, size/bytesPerInsn)
	if !c.decode() {
		return nil, fmt.Errorf("more than %d instructions take too much memory", maxInsns)
	}
	c.link(func(int) bool { return true })
	return c, nil
}

// newCode has the pieces of an image, and no instructions yet.
func newCode(im *image.Image) (*Code, error) {
	c := &Code{Pieces: make([]Piece, 0, len(im.Ranges)), ends: make([]uint64, 0, len(im.Ranges))}
	for i := range im.Ranges {
		r := &im.Ranges[i]
		s := im.SectionAt(r.Lo)
		if s == nil || r.Hi <= r.Lo || r.Hi-s.Addr > uint64(len(s.Data)) {
			continue
		}
		if n := len(c.Pieces); n > 0 && r.Lo < c.Pieces[n-1].Hi {
			return nil, fmt.Errorf("code range %x-%x overlaps %x-%x", r.Lo, r.Hi, c.Pieces[n-1].Lo,
				c.Pieces[n-1].Hi)
		}
		c.Pieces = append(c.Pieces, Piece{Range: r, section: s, parent: int32(len(c.Pieces)),
			jumpedBy: [2]int32{-1, -1}})
		c.ends = append(c.ends, r.Hi)
	}
	c.indexPieces()
	return c, nil
}

// keepRows keeps the unwind rows of some pieces, which are asked for often.
func (c *Code) keepRows(is func(piece int) bool) {
	const stretch = 64 // pieces whose rows share memory
	parallel.Each((len(c.Pieces)+stretch-1)/stretch, func(at int) {
		pieces := c.Pieces[at*stretch : min(len(c.Pieces), (at+1)*stretch)]
		var rows []image.Row
		var ends [stretch]int
		var kept [][]image.Row
		for i := range pieces {
			if pieces[i].rows == nil && is(at*stretch+i) {
				rows = pieces[i].AppendRows(rows)
			}
			ends[i] = len(rows)
		}
		begin := 0
		for i := range pieces {
			if end := ends[i]; end > begin {
				if kept == nil {
					kept = make([][]image.Row, 0, len(pieces)-i)
				}
				kept = append(kept, rows[begin:end:end])
				pieces[i].rows = &kept[len(kept)-1]
				begin = end
			}
		}
	})
}

// link finds where the jumps and calls of some pieces go.
func (c *Code) link(is func(piece int) bool) {
	n := len(c.Insns)
	c.Target, c.PieceOf = slices.Grow(c.Target[:0], n)[:n], slices.Grow(c.PieceOf[:0], n)[:n]
	const stretch = 64 // pieces
	parallel.Each((len(c.Pieces)+stretch-1)/stretch, func(at int) {
		for p := at * stretch; p < min(len(c.Pieces), (at+1)*stretch); p++ {
			is := is(p)
			for i := c.Pieces[p].First; i < c.Pieces[p].Last; i++ {
				c.Target[i], c.PieceOf[i] = -1, int32(p)
				if is && c.Insns[i].Kind.IsRelative() {
					c.Target[i] = int32(c.findFrom(&c.Pieces[p], c.Insns[i].Target()))
				}
			}
		}
	})
}

// bytesPerInsn is a little below what compilers emit.
const bytesPerInsn = 4

// decode decodes all pieces, on all CPUs. It reports whether there are not too many instructions.
func (c *Code) decode() bool {
	const (
		stretch = 64 // pieces that one CPU decodes at a time
		most    = 32 // stretches whose instructions are kept apart until they are put together
	)
	var total atomic.Int64
	buffers := make([][]cfg.Insn, most)
	for stretches := range slices.Chunk(slices.Collect(slices.Chunk(c.Pieces, stretch)), most) {
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
func decodeAll(pieces []Piece, list []cfg.Insn, total *atomic.Int64) []cfg.Insn {
	size := 0
	for i := range pieces {
		size += int(pieces[i].Hi - pieces[i].Lo)
	}
	list = slices.Grow(list, size/bytesPerInsn)
	for i := range pieces {
		p := &pieces[i]
		p.First = len(list)
		list = p.decode(list, total)
		p.Last = len(list)
	}
	return list
}

// add adds the instructions of some stretches of pieces, each of which counts its own.
func (c *Code) add(stretches [][]Piece, decoded [][]cfg.Insn) {
	before := make([]int, len(stretches)+1)
	before[0] = len(c.Insns)
	for i := range stretches {
		before[i+1] = before[i] + len(decoded[i])
	}
	all := before[len(stretches)]
	c.Insns = slices.Grow(c.Insns, all-before[0])[:all]
	parallel.Each(len(stretches), func(i int) {
		copy(c.Insns[before[i]:], decoded[i])
		for k := range stretches[i] {
			p := &stretches[i][k]
			p.First, p.Last = before[i]+p.First, before[i]+p.Last
		}
	})
}

// decode appends the piece's instructions to a list, unless there are more than maxInsns in all.
func (p *Piece) decode(list []cfg.Insn, total *atomic.Int64) []cfg.Insn {
	counted := len(list)
	code := p.Text()
	for at := 0; at < len(code); {
		if n := len(list) - counted; n >= 4096 {
			counted += n
			if total.Add(int64(n)) > int64(maxInsns) {
				return list
			}
		}
		if len(list) == cap(list) {
			list = slices.Grow(list, 1)
		}
		q := &list[:len(list)+1][len(list)] // not appended: that would copy it
		if q.Addr = p.Lo + uint64(at); !q.Read(code[at:]) {
			at++
			continue
		}
		list = list[:len(list)+1]
		if bare, ok := x86.Unlocked(code[at:]); ok {
			// programs jump over the lock prefix where they know that they have one thread
			list = append(list, cfg.Insn{Addr: q.Addr + 1, Inst: bare})
		}
		at += int(q.Len)
	}
	total.Add(int64(len(list) - counted))
	return list
}

// Bytes returns the bytes of instruction i.
func (c *Code) Bytes(i int) []byte {
	return c.Pieces[c.PieceOf[i]].textOf(&c.Insns[i])
}

// FindPiece returns the piece that covers addr, or -1.
func (c *Code) FindPiece(addr uint64) int {
	i := c.firstAfter(addr)
	if i < len(c.Pieces) && c.Pieces[i].Lo <= addr {
		return i
	}
	return -1
}

// firstAfter is the first piece that ends behind addr.
func (c *Code) firstAfter(addr uint64) int {
	at := (addr - c.indexed) >> c.shift
	switch {
	case addr < c.indexed:
		return 0
	case at >= uint64(len(c.index)):
		return len(c.ends)
	}
	from, to := int(c.index[at]), len(c.ends)
	if at++; at < uint64(len(c.index)) {
		to = int(c.index[at])
	}
	for from < to {
		if middle := (from + to) / 2; c.ends[middle] <= addr {
			from = middle + 1
		} else {
			to = middle
		}
	}
	return from
}

// indexPieces makes the index by which pieces are found.
func (c *Code) indexPieces() {
	n := len(c.Pieces)
	if n == 0 {
		return
	}
	c.indexed = c.Pieces[0].Lo
	span := c.ends[n-1] - c.indexed
	for c.shift = 0; span>>c.shift >= uint64(n); c.shift++ {
	}
	c.index = make([]int32, span>>c.shift+1)
	i := 0
	for at := range c.index {
		for begin := c.indexed + uint64(at)<<c.shift; c.ends[i] <= begin && i < n-1; {
			i++
		}
		c.index[at] = int32(i)
	}
}

// Find returns the instruction that begins at addr, or -1.
func (c *Code) Find(addr uint64) int {
	i := c.FindPiece(addr)
	if i < 0 {
		return -1
	}
	return c.findAt(i, addr)
}

// findAt is Find, in piece i.
func (c *Code) findAt(i int, addr uint64) int {
	at := c.findIn(&c.Pieces[i], addr)
	if at < 0 {
		c.survey.Miss(i)
	}
	return at
}

// findFrom is find, at less cost where addr is in the piece that it is looked for from.
func (c *Code) findFrom(p *Piece, addr uint64) int {
	if p.Lo <= addr && addr < p.Hi {
		return c.findIn(p, addr)
	}
	return c.Find(addr)
}

func (c *Code) findIn(p *Piece, addr uint64) int {
	// by hand: calls of a function that compares take half of the time that finding all jumps'
	// targets takes
	from, to := p.First, p.Last
	for from < to {
		if middle := (from + to) / 2; c.Insns[middle].Addr < addr {
			from = middle + 1
		} else {
			to = middle
		}
	}
	if from == p.Last || c.Insns[from].Addr != addr {
		return -1
	}
	return from
}

// Effects are what instruction i does.
func (c *Code) Effects(i int) x86.Effects {
	return c.Insns[i].Effects(c.Bytes(i), c.Insns[i].End())
}

// Operands decodes the ModRM operands of instruction i.
func (c *Code) Operands(i int) (reg int8, rm x86.Operand, imm int) {
	return c.Insns[i].Operands(c.Bytes(i), c.Insns[i].End())
}
