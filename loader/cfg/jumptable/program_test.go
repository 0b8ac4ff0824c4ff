package jumptable_test

import (
	"encoding/binary"
	"slices"
	"sync/atomic"

	"wpptrace/loader/cfg/absint"
	"wpptrace/loader/cfg/jumptable"
	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// The layout of a program: a routine from codeAt on, another one behind it, and a table.
const (
	codeAt  = 0x1000
	caseAt  = 0x1018 // four instructions of a byte each: what the switch leads to
	otherAt = 0x1020
	tableAt = 0x2000
)

// A program is Code of two routines without a frame: the first jumps through a table.
type program struct {
	insns []x86.Inst
	addrs []uint64
	bytes [][]byte
	named []uint64
	image *image.Image
}

// switchOn is a switch with four cases, as compilers make it in a position-independent program.
var switchOn = []byte{
	0x83, 0xff, 0x03, // cmp $3,%edi
	0x77, 0x12, // ja to the ret
	0x89, 0xf8, // mov %edi,%eax
	0x48, 0x8d, 0x15, 0xf2, 0x0f, 0x00, 0x00, // lea table(%rip),%rdx
	0x48, 0x63, 0x04, 0x82, // movslq (%rdx,%rax,4),%rax
	0x48, 0x01, 0xd0, // add %rdx,%rax
	0xff, 0xe0, // jmp *%rax
	0xc3, // ret
}

// newProgram makes a program of the first routine's code, up to caseAt, and the addresses that its
// table's entries lead to.
func newProgram(code []byte, entries ...uint64) *program {
	text := slices.Concat(code, slices.Repeat([]byte{0x90}, caseAt-codeAt-len(code)),
		[]byte{0xc3, 0xc3, 0xc3, 0xc3, 0x90, 0x90, 0x90, 0x90, 0x90, 0xc3})
	var table []byte
	for _, to := range entries {
		table = binary.LittleEndian.AppendUint32(table, uint32(to-tableAt))
	}
	p := &program{image: &image.Image{PIE: true, Sections: []image.Section{
		{Name: ".text", Addr: codeAt, Data: text, Exec: true},
		{Name: ".rodata", Addr: tableAt, Data: table}}}}
	for at := 0; at < len(text); {
		in, _ := x86.Decode(text[at:])
		p.insns, p.addrs = append(p.insns, in), append(p.addrs, codeAt+uint64(at))
		p.bytes = append(p.bytes, text[at:at+int(in.Len)])
		at += int(in.Len)
	}
	return p
}

// input has the first routine's blocks, as far as they are known without its indirect jumps, and
// the blocks that such jumps end.
func (p *program) input(steps int64) (in jumptable.Input, jumps []int) {
	in = jumptable.Input{Code: p, Image: p.image, Entries: []int{0}, OwnLabels: true,
		Labels: func(func(int) bool) {}, HidesFrame: func() bool { return true },
		Ends: []uint64{otherAt}, Steps: &atomic.Int64{}}
	in.Steps.Store(steps)
	blocks := map[int]int{} // by the first instruction
	for todo := []int{0}; len(todo) > 0; todo = todo[1:] {
		first := todo[0]
		if _, ok := blocks[first]; ok {
			continue
		}
		blocks[first] = len(in.Blocks)
		last := first
		for k := p.insns[last].Kind; k != x86.Jcc && k != x86.JmpInd && k != x86.Ret; last++ {
			k = p.insns[last+1].Kind
		}
		b := jumptable.Block{First: first, Count: last - first + 1, Lo: p.addrs[first],
			Hi: p.addrs[last] + uint64(p.insns[last].Len)}
		switch p.insns[last].Kind {
		case x86.Jcc:
			taken := p.Find(b.Hi + uint64(int64(p.insns[last].Rel)))
			b.Succ, b.Conditional = []int{taken, last + 1}, true
			todo = append(todo, b.Succ...)
		case x86.JmpInd:
			jumps = append(jumps, len(in.Blocks))
		}
		in.Blocks = append(in.Blocks, b)
	}
	for b := range in.Blocks {
		for k, first := range in.Blocks[b].Succ {
			to := blocks[first]
			in.Blocks[b].Succ[k] = to
			in.Blocks[to].Preds = append(in.Blocks[to].Preds, int32(b))
		}
	}
	return in, jumps
}

func (p *program) Find(addr uint64) int     { return slices.Index(p.addrs, addr) }
func (p *program) Kind(i int) x86.Kind      { return p.insns[i].Kind }
func (p *program) CFA(int) image.CFA        { return absint.EntryCFA }
func (p *program) Clobbers(int) x86.Set     { return 0 }
func (p *program) TakenAddress(int) uint64  { return 0 }
func (p *program) Joins(int) bool           { return false }
func (p *program) IsEntry(i int) bool       { return i == 0 || i == p.Find(otherAt) }
func (p *program) IsDoubtful(int) bool      { return false }
func (p *program) IsAmidFunction(int) bool  { return false }
func (p *program) MayBePart(int, bool) bool { return false }
func (p *program) IsBoundary(a uint64) bool { return a == codeAt || a == otherAt }
func (p *program) IsNamed(addr uint64) bool { return slices.Contains(p.named, addr) }
func (p *program) IsTaken(int) bool         { return false }
func (p *program) IsPointedTo(uint64) bool  { return false }

func (p *program) Effects(i int) x86.Effects {
	return p.insns[i].Effects(p.bytes[i], p.addrs[i]+uint64(p.insns[i].Len))
}

func (p *program) Inside(i int) int {
	if i < 0 || p.addrs[i] >= otherAt {
		return -1
	}
	return i
}

func (p *program) IsEnd(image.CFA, uint64) bool { return false }
