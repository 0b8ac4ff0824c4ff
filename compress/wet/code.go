package wet

import (
	"encoding/binary"
	"fmt"
	"slices"

	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wpp"
)

// Code is the instructions of a program's routines, decoded, and where they are in the process. It
// belongs to one goroutine while it may still be placed or asked for a routine for the first time.
type Code struct {
	source   func(routine int) *Routine
	routines []*Routine
	biases   []uint64      // by image
	changed  []int         // routines
	tables   []wpp.Routine // of the snapshot that it was read of
}

// A Routine is the instructions of a traced routine. Nothing but who makes it changes it.
type Routine struct {
	Image  int // index in Snapshot.Images, and in the parts of a plan
	Blocks []Block
}

// A Block is instructions that follow one another in memory.
type Block struct {
	Addr  uint64 // link-time
	Insns []machine.Insn
	// Frame has the instructions whose memory operand is in the frame of a routine that takes no
	// address there, ascending: nobody else knows of it.
	Frame []int
	Sites []Site // in the order of their instructions
	notes []note // by instruction
}

// A note is what a walker asks of each instruction.
type note struct {
	uses         uint16 // general registers
	loads, store bool   // nobody else knows where it loads, or stores
}

// note notes what a walker asks of the instructions of a routine.
func (r *Routine) note() {
	for i := range r.Blocks {
		b := &r.Blocks[i]
		b.notes = make([]note, len(b.Insns))
		for j := range b.Insns {
			n := &b.notes[j]
			n.uses = uint16(b.Insns[j].Uses().General)
			n.loads, n.store = usesStack(b.Insns[j].Op)
		}
		for _, j := range b.Frame {
			b.notes[j].loads, b.notes[j].store = true, true
		}
	}
}

// A Site is an instruction that carries a probe. Its Number is not stored.
type Site struct {
	Insn   int // index in the block
	Number int // of the probe
}

// NewCode returns code that a source has: it is asked for each routine once, when it is needed
// first. It returns nil for one that is not traced.
func NewCode(source func(routine int) *Routine) *Code { return &Code{source: source} }

// Routine returns a routine, nil if it has none of that number.
func (c *Code) Routine(number int) *Routine {
	if number < len(c.routines) && c.routines[number] != nil {
		return c.routines[number]
	}
	if c.source == nil || number < 0 {
		return nil
	}
	if n := number + 1 - len(c.routines); n > 0 {
		c.routines = append(c.routines, make([]*Routine, n)...)
	}
	if c.routines[number] = c.source(number); c.routines[number] != nil {
		c.routines[number].note()
	}
	return c.routines[number]
}

// Place says where an image lies: its addresses in the process are so much more than in its file.
func (c *Code) Place(image int, bias uint64) {
	if n := image + 1 - len(c.biases); n > 0 {
		c.biases = append(c.biases, make([]uint64, n)...)
	}
	c.biases[image] = bias
}

// Bias is what Place has said of an image, 0 where it has not.
func (c *Code) Bias(image int) uint64 {
	if image < len(c.biases) {
		return c.biases[image]
	}
	return 0
}

// SetChanged says of which routines, in the order of their numbers, the code may have been other
// than it is here at some time while it ran. No value is confirmed then: what other instructions
// have computed is found out where a probe has seen it, and nowhere else.
func (c *Code) SetChanged(routines []int) { c.changed = routines }

// Changed returns what SetChanged has said, in the order of their numbers.
func (c *Code) Changed() []int { return c.changed }

// Copy returns the code of the routines that have been asked for so far, and no others: another
// goroutine may take its Section.
func (c *Code) Copy() *Code {
	return &Code{routines: slices.Clone(c.routines), biases: slices.Clone(c.biases),
		changed: c.changed}
}

// Section returns the code of the routines that were asked for.
func (c *Code) Section() *wpp.Section {
	b := binary.AppendUvarint(nil, version)
	b = binary.AppendUvarint(b, uint64(len(c.biases)))
	for _, bias := range c.biases {
		b = binary.AppendUvarint(b, bias)
	}
	n := 0
	for _, r := range c.routines {
		if r != nil {
			n++
		}
	}
	b = binary.AppendUvarint(b, uint64(n))
	for number, r := range c.routines {
		if r != nil {
			b = appendRoutine(binary.AppendUvarint(b, uint64(number)), r)
		}
	}
	for _, number := range c.changed { // nearly always none
		b = binary.AppendUvarint(b, uint64(number))
	}
	return wpp.NewSection(CodeKind, b)
}

func appendRoutine(b []byte, r *Routine) []byte {
	b = binary.AppendUvarint(b, uint64(r.Image))
	b = binary.AppendUvarint(b, uint64(len(r.Blocks)))
	for i := range r.Blocks {
		block := &r.Blocks[i]
		b = binary.AppendUvarint(b, block.Addr)
		b = binary.AppendUvarint(b, uint64(len(block.Insns)))
		for j := range block.Insns {
			b = machine.AppendInsn(b, &block.Insns[j])
		}
		b = binary.AppendUvarint(b, uint64(len(block.Frame)))
		for _, i := range block.Frame {
			b = binary.AppendUvarint(b, uint64(i))
		}
		b = binary.AppendUvarint(b, uint64(len(block.Sites)))
		for _, s := range block.Sites {
			b = binary.AppendUvarint(b, uint64(s.Insn))
		}
	}
	return b
}

// readCode reads the section of a snapshot, and compares it with the tables of that.
func readCode(s *wpp.Snapshot, data []byte) (*Code, error) {
	r := &reader{rest: data}
	if v := r.number(); v != version && r.err == nil {
		return nil, fmt.Errorf("it is of version %d, which another wpptrace reads", v)
	}
	c := &Code{routines: make([]*Routine, len(s.Routines)), tables: s.Routines}
	for image := range r.count(len(s.Images), "images") {
		c.Place(image, r.number())
	}
	for range r.count(len(s.Routines), "routines") {
		number := r.count(len(s.Routines)-1, "routine")
		if r.err != nil {
			break
		}
		if c.routines[number] != nil {
			return nil, fmt.Errorf("it has routine %d twice", number)
		}
		made, err := readRoutine(r, &s.Routines[number])
		if err != nil {
			return nil, fmt.Errorf("routine %d: %w", number, err)
		}
		if made.Image != s.Routines[number].Image {
			return nil, fmt.Errorf("routine %d is of image %d", number, made.Image)
		}
		made.note()
		c.routines[number] = made
	}
	for last := -1; len(r.rest) > 0 && r.err == nil; {
		number := r.count(len(s.Routines)-1, "changed routine")
		if number <= last {
			r.fail("changed routines that do not ascend")
		}
		c.changed = append(c.changed, number)
		last = number
	}
	return c, r.end()
}

// isOf reports whether code was compared with the tables of a snapshot when it was read.
func (c *Code) isOf(s *wpp.Snapshot) bool {
	return len(c.tables) == len(s.Routines) && len(c.biases) <= len(s.Images) &&
		(len(c.tables) == 0 || &c.tables[0] == &s.Routines[0])
}

func readRoutine(r *reader, of *wpp.Routine) (*Routine, error) {
	made := &Routine{Image: int(r.number())}
	n := r.count(len(of.Blocks), "blocks")
	if n != len(of.Blocks) && r.err == nil {
		return nil, fmt.Errorf("it has %d blocks of %d", n, len(of.Blocks))
	}
	made.Blocks = make([]Block, 0, n)
	for i := range n {
		block, err := readBlock(r, &of.Blocks[i])
		if err != nil {
			return nil, fmt.Errorf("block %d: %w", i, err)
		}
		made.Blocks = append(made.Blocks, block)
	}
	return made, r.err
}

func readBlock(r *reader, of *wpp.Block) (b Block, err error) {
	b.Addr = r.number()
	n := r.count(len(of.Lengths), "instructions")
	if r.err == nil && (n != len(of.Lengths) || b.Addr != of.Addr) {
		return b, fmt.Errorf("%d instructions at %x are %d at %x in the paths", n, b.Addr,
			len(of.Lengths), of.Addr)
	}
	b.Insns = make([]machine.Insn, 0, n)
	for i := range n {
		if r.err != nil {
			break
		}
		var in machine.Insn
		if in, r.rest, err = machine.ParseInsn(r.rest); err != nil {
			return b, err
		}
		if in.Len != of.Lengths[i] {
			return b, fmt.Errorf("instruction %d has %d bytes, and %d in the paths", i, in.Len,
				of.Lengths[i])
		}
		b.Insns = append(b.Insns, in)
	}
	b.Frame = readAscending(r, n, "instructions of frames")
	for _, i := range readAscending(r, n, "probes") {
		b.Sites = append(b.Sites, Site{Insn: i})
	}
	return b, r.err
}

// readAscending reads indices of a block's instructions.
func readAscending(r *reader, insns int, of string) (list []int) {
	last := -1
	for range r.count(insns, of) {
		at := r.count(insns-1, of)
		if r.err != nil {
			return nil
		}
		if at <= last {
			r.fail("%s that do not ascend", of)
			return nil
		}
		last = at
		list = append(list, at)
	}
	return list
}
