package chart

import (
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/arch/x86/x86asm"

	"wpptrace/loader/arch"
	"wpptrace/loader/cfg"
	"wpptrace/loader/image"
	"wpptrace/loader/plan"
)

// A drawing says of one routine's blocks what a chart has of them.
type drawing struct {
	plan  *plan.Plan
	r     *plan.Routine
	lines *image.Lines
}

// ends are how blocks end.
var ends = [...]string{
	cfg.Fall: "runs on", cfg.Jcc: "conditional jump", cfg.Jmp: "jump", cfg.Call: "call",
	cfg.CallInd: "indirect call",
	cfg.Ret:     "return", cfg.Tail: "tail jump", cfg.TailInd: "indirect tail jump",
	cfg.Table:    "switch",
	cfg.NoReturn: "call that never returns", cfg.Trap: "trap", cfg.Unresolved: "unresolved jump",
}

func (d *drawing) block(b int) Block {
	bl := &d.r.Blocks[b]
	last := &bl.Insns[len(bl.Insns)-1]
	block := Block{
		Number: b, From: bl.Lo, To: bl.Hi, Source: source(d.lines, bl.Lo), Ending: d.text(last),
		End:  ends[bl.End],
		Next: append([]int{}, bl.After()...), Callee: d.callee(b), Entered: d.entered(b),
	}
	if bl.End == cfg.Jcc {
		block.Taken = &bl.Succ[0]
	}
	if s := d.r.Site(b); s != nil {
		block.Probe = d.probe(s)
	}
	if c := d.r.Counts(b); c != nil {
		loop := "its rounds: " + arch.Native.RegisterName(c.Reg, uint8(c.Width/8)) + " counts them"
		block.Loop = &loop
	}
	return block
}

// entered says how a block is come to, if otherwise than by a jump or from the block before.
func (d *drawing) entered(b int) string {
	var how []string
	if b == d.r.Entry {
		how = append(how, "entry")
	}
	for _, o := range d.r.Others {
		if b == o {
			how = append(how, "another entry")
		}
	}
	for _, p := range d.r.Pads {
		if b == p {
			how = append(how, "landing pad")
		}
	}
	for c := range d.r.Blocks {
		if d.r.ReturnsTwice(c) && d.r.Blocks[c].Succ[0] == b {
			how = append(how, "second return")
		}
	}
	return strings.Join(how, ", ")
}

// callee names what a block calls or jumps to.
func (d *drawing) callee(b int) *string {
	kind, to := d.r.Callee(b)
	switch {
	case kind == plan.NoCallee:
		return nil
	case to != nil:
		return &to.Name
	}
	program := d.plan.Parts[0].Program
	for _, part := range d.plan.Parts {
		if part.Offset == d.r.Offset() {
			program = part.Program
		}
	}
	external, name := program.Callee(d.r.Routine, b)
	switch {
	case external != nil:
		return &external.Name
	case name != "":
		return &name
	}
	return nil
}

func (d *drawing) probe(s *plan.Site) *Probe {
	q := &d.r.Blocks[s.Block].Insns[s.Insn]
	p := &Probe{
		Addr: q.Addr, Instruction: d.text(q), Class: "emulated", Activation: activation(s),
		Outcome: s.Condition != plan.NoCondition, First: s.First,
	}
	if s.Stepped {
		p.Class = "single-stepped"
	}
	if s.Capture != nil {
		what, decides := d.capture(s.Capture)
		p.Captured, p.Decides = &what, &decides
	}
	return p
}

// activation is where the address of the frame is: the canonical frame address of unwind
// information.
func activation(s *plan.Site) string {
	at := fmt.Sprintf("%s%+d", arch.Native.RegisterName(int8(s.Base), 8), s.Offset)
	if s.Slot {
		return "what lies at " + at
	}
	return at
}

// capture says what is read, and what that decides.
func (d *drawing) capture(c *plan.Capture) (what, decides string) {
	e := c.Encode()
	switch {
	case e.Memory:
		what = memory(&e)
	case e.Index != plan.NoRegister:
		what = arch.Native.RegisterName(e.Reg, e.Size) + " - " + arch.Native.RegisterName(e.Index,
			e.Size)
	default:
		what = arch.Native.RegisterName(e.Reg, e.Size)
	}
	switch c.Kind {
	case plan.SwitchIndex, plan.SwitchTarget:
		return what, fmt.Sprintf("where the switch of block %d goes", c.Table)
	case plan.JumpPlace:
		return what, "the jumps of " + numbers("block", c.Jumps)
	}
	return what, "the rounds of loops without a probe"
}

// memory is an operand in memory, as assemblers have it.
func memory(e *plan.Encoding) string {
	var terms []string
	if e.RIP {
		terms = append(terms, "image")
	}
	if e.Reg != plan.NoRegister {
		terms = append(terms, arch.Native.RegisterName(e.Reg, 8))
	}
	if e.Index != plan.NoRegister {
		terms = append(terms, fmt.Sprintf("%s*%d", arch.Native.RegisterName(e.Index, 8), e.Scale))
	}
	return fmt.Sprintf("%d bytes at %s%+d", e.Size, strings.Join(terms, "+"), e.Disp)
}

// text is an instruction in the syntax of GNU assemblers; its bytes, if it is none that the
// disassembler knows.
func (d *drawing) text(q *cfg.Insn) string {
	code := d.r.Code(q)
	in, err := x86asm.Decode(code, 64)
	if err != nil || in.Len != len(code) {
		return fmt.Sprintf("% x", code)
	}
	return strings.TrimSpace(x86asm.GNUSyntax(in, q.Addr, nil))
}

// source is a line of source, by the name of its file without directories; nil if it is not known.
func source(lines *image.Lines, addr uint64) *string {
	if lines == nil {
		return nil
	}
	file, line, ok := lines.At(addr)
	if !ok {
		return nil
	}
	at := fmt.Sprintf("%s:%d", filepath.Base(file), line)
	return &at
}

// numbers names some blocks or routes.
func numbers(noun string, list []int) string {
	if len(list) > 1 {
		noun += "s"
	}
	return noun + " " + join(list, ", ")
}

func join(list []int, separator string) string {
	names := make([]string, len(list))
	for i, n := range list {
		names[i] = nodeName(n)
	}
	return strings.Join(names, separator)
}

func nodeName(n int) string {
	switch n {
	case Exit:
		return "end"
	case Entry:
		return "entry"
	case Never:
		return "no return"
	}
	return fmt.Sprint(n)
}
