package covered

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"wpptrace/compress/wpp"
)

// Kind is that of the section.
const Kind = (wpp.FirstSection + 4) | wpp.Critical

// Bits of a block's state in the section.
const (
	stateMask     = 3
	hasJump       = 1 << 2
	outcomesBegin = 3 // two bits each
)

// Section returns the section that Of reads. It takes time linear in the blocks.
func (c *Coverage) Section() *wpp.Section {
	m := &CoverageSection{}
	for i := range c.Images {
		m.Image = append(m.Image, encodeImage(&c.Images[i]))
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil { // names that are no UTF-8 were replaced
		panic(err)
	}
	return wpp.NewSection(Kind, data)
}

// valid is a name as a section may have it: bytes that are no UTF-8 are replaced.
func valid(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }

func encodeImage(from *Image) *CoverageSection_Image {
	to := &CoverageSection_Image{Name: valid(from.Name), BuildId: from.BuildID}
	for _, name := range from.Files {
		to.File = append(to.File, valid(name))
	}
	for _, r := range from.Routines {
		to.Routine = append(to.Routine, &CoverageSection_Routine{Name: valid(r.Name),
			Symbol: valid(r.Symbol), Addr: r.Addr, File: uint32(r.Place.File),
			Line: uint32(r.Place.Line)})
	}
	last := uint64(0)
	for i := range from.Blocks {
		b := &from.Blocks[i]
		to.AddrStep = append(to.AddrStep, b.Addr-last)
		last = b.Addr
		to.RoutineNext = append(to.RoutineNext, uint32(b.Routine+1))
		state := byte(b.Ran)
		if j := b.Jump; j != nil {
			state |= hasJump
			for o, s := range j.Outcomes {
				state |= byte(s) << (outcomesBegin + 2*o)
			}
			to.JumpFile = append(to.JumpFile, uint32(j.Place.File))
			to.JumpLine = append(to.JumpLine, uint32(j.Place.Line))
		}
		to.State = append(to.State, state)
		to.LineCount = append(to.LineCount, uint32(len(b.Lines)))
		for _, l := range b.Lines {
			to.LineFile = append(to.LineFile, uint32(l.File))
			to.Line = append(to.Line, uint32(l.Line))
		}
	}
	return to
}

// Of returns the coverage that a snapshot holds which was read with Kind as a known one; nil: it
// holds none. It fails where the section is damaged.
func Of(s *wpp.Snapshot) (*Coverage, error) {
	for section := range s.SectionsOf(Kind) {
		c, err := decode(section)
		if err != nil {
			return nil, fmt.Errorf("read the section of what has run: %w", err)
		}
		return c, nil
	}
	return nil, nil
}

// decode reads a section. It trusts nothing in it: no index of what it returns is out of range.
func decode(section *wpp.Section) (*Coverage, error) {
	data, err := section.Data()
	if err != nil {
		return nil, err
	}
	m := &CoverageSection{}
	if err := proto.Unmarshal(data, m); err != nil {
		return nil, err
	}
	c := &Coverage{}
	for _, from := range m.Image {
		image, err := decodeImage(from)
		if err != nil {
			return nil, fmt.Errorf("image %s: %w", from.Name, err)
		}
		c.Images = append(c.Images, *image)
	}
	return c, nil
}

var errIncomplete = errors.New("lists of its blocks are incomplete")

func decodeImage(from *CoverageSection_Image) (*Image, error) {
	d := &decoder{from: from}
	to := &Image{Name: from.Name, BuildID: from.BuildId, Files: from.File}
	for _, r := range from.Routine {
		to.Routines = append(to.Routines, Routine{Name: r.Name, Symbol: r.Symbol, Addr: r.Addr,
			Place: d.place(r.File, r.Line)})
	}
	n := len(from.AddrStep)
	if len(from.RoutineNext) != n || len(from.State) != n || len(from.LineCount) != n ||
		len(from.LineFile) != len(from.Line) || len(from.JumpFile) != len(from.JumpLine) {
		return nil, errIncomplete
	}
	last := uint64(0)
	for i := range n {
		if i > 0 && from.AddrStep[i] > ^last {
			return nil, errors.New("addresses of its blocks do not ascend")
		}
		last += from.AddrStep[i]
		b, err := d.block(i)
		if err != nil {
			return nil, err
		}
		b.Addr = last
		to.Blocks = append(to.Blocks, b)
	}
	if d.bad {
		return nil, errors.New("a source file is none that it names")
	}
	return to, nil
}

// A decoder reads the blocks of an image, one after the other.
type decoder struct {
	from       *CoverageSection_Image
	line, jump int  // the next of the lists
	bad        bool // a source file is out of range
}

// place is a source line, or the zero value where it is not known.
func (d *decoder) place(file, line uint32) Line {
	if line == 0 {
		return Line{}
	}
	if int64(file) >= int64(len(d.from.File)) {
		d.bad = true
		return Line{}
	}
	return Line{File: int(file), Line: int(line)}
}

func (d *decoder) block(i int) (b Block, err error) {
	f := d.from
	if int64(f.RoutineNext[i]) > int64(len(f.Routine)) {
		return b, fmt.Errorf("routine %d is none of %d", f.RoutineNext[i], len(f.Routine))
	}
	b.Routine = int(f.RoutineNext[i]) - 1
	if b.Ran, err = stateOf(f.State[i]); err != nil {
		return b, err
	}
	if uint64(f.LineCount[i]) > uint64(len(f.Line)-d.line) {
		return b, errIncomplete
	}
	for range f.LineCount[i] {
		if l := d.place(f.LineFile[d.line], f.Line[d.line]); l.Line > 0 {
			b.Lines = append(b.Lines, l)
		}
		d.line++
	}
	if f.State[i]&hasJump == 0 {
		return b, nil
	}
	if d.jump >= len(f.JumpLine) {
		return b, errIncomplete
	}
	j := &Jump{Place: d.place(f.JumpFile[d.jump], f.JumpLine[d.jump])}
	d.jump++
	for o := range j.Outcomes {
		if j.Outcomes[o], err = stateOf(f.State[i] >> (outcomesBegin + 2*o)); err != nil {
			return b, err
		}
	}
	b.Jump = j
	return b, nil
}

func stateOf(bits byte) (State, error) {
	if s := State(bits & stateMask); s <= Run {
		return s, nil
	}
	return 0, errors.New("the state of a block is none that there is")
}

// CheckPaths fails for a snapshot that was read with Kind as a known one and holds a coverage: it
// says nothing of paths. path is what it was read from.
func CheckPaths(path string, s *wpp.Snapshot) error {
	for range s.SectionsOf(Kind) {
		return fmt.Errorf("read %s: it says which code has run, and not in which paths: wpptrace "+
			"coverage prints it", path)
	}
	return nil
}
