package overlapped

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	"wpptrace/compress/ops"
	"wpptrace/compress/wpp"
)

// SectionKind is that of the section.
const SectionKind = wpp.FirstSection + 5

// A Profile is how often overlapping paths of a degree ran, in all threads together.
type Profile struct {
	Degree     int     // 0 or more
	Shapes     []Shape // of the routines that ran, ascending
	Extensions []Extension
	Counts     []Count // by path, then extension, ascending
	// Broken counts where two paths follow one another and make no pair.
	Broken [Reasons]uint64
	// Uncounted are paths not all of whose pairs are counted, for there are too many, ascending.
	Uncounted []uint32
	// Unsure are pairs that are not counted, for it is not known whether they are some, where such
	// are: one or more of each place, in no order. Only profiles of recordings have them, and
	// sections do not.
	Unsure []Unsure
}

// An Extension is what an overlapping path adds to the path that it begins with.
type Extension struct {
	Routine int // index in Snapshot.Routines
	Loop    int // index in the shape's Loops; -1: behind a call, or at an entry
	Blocks  []int
}

// A Count is how often an overlapping path ran.
type Count struct {
	Path      uint32 // symbol of the path that it begins with, whose end says of which kind it is
	Extension int    // index in Extensions
	N         uint64 // 2^64-1: that or more
}

// key is the same for equal extensions alone.
func (x *Extension) key() string {
	b := binary.AppendUvarint(nil, uint64(x.Routine))
	b = binary.AppendUvarint(b, uint64(x.Loop+1))
	for _, block := range x.Blocks {
		b = binary.AppendUvarint(b, uint64(block))
	}
	return string(b)
}

// KindOf returns of which kind the overlapping paths are that begin with a path with that end.
func KindOf(end ops.End) (kind Kind, ok bool) {
	switch end {
	case ops.EndLoop:
		return OverLoop, true
	case ops.EndCall:
		return Into, true
	case ops.EndReturn:
		return Back, true
	}
	return 0, false
}

// ShapeOf returns the shape of a routine, or nil.
func (p *Profile) ShapeOf(routine int) *Shape {
	i := search(len(p.Shapes), func(i int) int { return cmp.Compare(p.Shapes[i].Routine, routine) })
	if i < 0 {
		return nil
	}
	return &p.Shapes[i]
}

// sort puts everything into the order that is the same however threads have taken turns, but for
// the numbers of symbols.
func (p *Profile) sort() {
	slices.SortFunc(p.Shapes, func(a, b Shape) int { return cmp.Compare(a.Routine, b.Routine) })
	order := make([]int, len(p.Extensions))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		a, b := &p.Extensions[i], &p.Extensions[j]
		return cmp.Or(cmp.Compare(a.Routine, b.Routine), cmp.Compare(a.Loop, b.Loop),
			slices.Compare(a.Blocks, b.Blocks))
	})
	sorted, place := make([]Extension, len(order)), make([]int, len(order))
	for i, from := range order {
		sorted[i], place[from] = p.Extensions[from], i
	}
	p.Extensions = sorted
	for i := range p.Counts {
		p.Counts[i].Extension = place[p.Counts[i].Extension]
	}
	slices.SortFunc(p.Counts, func(a, b Count) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Extension, b.Extension))
	})
	slices.Sort(p.Uncounted)
}

// Section returns the section that Of reads. It takes time linear in the profile.
func (p *Profile) Section() *wpp.Section {
	broken := p.Broken[:]
	for len(broken) > 0 && broken[len(broken)-1] == 0 { // older readers know fewer
		broken = broken[:len(broken)-1]
	}
	m := &OverlappedSection{Degree: uint32(p.Degree), Broken: broken, Uncounted: p.Uncounted}
	for i := range p.Shapes {
		from := &p.Shapes[i]
		to := &OverlappedSection_Shape{Routine: uint32(from.Routine),
			Predicate: narrow(from.Predicates)}
		for _, l := range from.Loops {
			to.Loop = append(to.Loop, &OverlappedSection_Loop{Head: uint32(l.Head),
				Block: narrow(l.Blocks), LeftOut: l.LeftOut})
		}
		for _, c := range from.Calls {
			to.Call = append(to.Call, uint32(c.Block))
			to.Callee = append(to.Callee, uint32(c.Routine))
		}
		m.Shape = append(m.Shape, to)
	}
	for _, x := range p.Extensions {
		m.Extension = append(m.Extension, &OverlappedSection_Extension{Routine: uint32(x.Routine),
			Loop: uint32(x.Loop + 1), Block: narrow(x.Blocks)})
	}
	for _, c := range p.Counts {
		m.Path = append(m.Path, c.Path)
		m.GoesOn = append(m.GoesOn, uint32(c.Extension))
		m.Count = append(m.Count, c.N)
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		panic(err) // a message of numbers, and of texts that are constants
	}
	return wpp.NewSection(SectionKind, data)
}

func narrow(list []int) []uint32 {
	to := make([]uint32, len(list))
	for i, n := range list {
		to[i] = uint32(n)
	}
	return to
}

// Of returns the overlapping paths of a snapshot that was read with SectionKind as a known one;
// nil: it has none. It fails where the section is damaged: what it returns refers to nothing that
// the snapshot does not have. It takes time linear in the section.
func Of(s *wpp.Snapshot) (*Profile, error) {
	for section := range s.SectionsOf(SectionKind) {
		p, err := decode(section, s)
		if err != nil {
			return nil, fmt.Errorf("read the section of overlapping paths: %w", err)
		}
		return p, nil
	}
	return nil, nil
}

func decode(section *wpp.Section, s *wpp.Snapshot) (*Profile, error) {
	data, err := section.Data()
	if err != nil {
		return nil, err
	}
	m := &OverlappedSection{}
	if err := proto.Unmarshal(data, m); err != nil {
		return nil, err
	}
	// the greatest number is that of whole paths, which only a recording has
	if m.Degree >= math.MaxInt32 || len(m.Broken) > Reasons {
		return nil, fmt.Errorf("it is of degree %d, with %d reasons", m.Degree,
			len(m.Broken))
	}
	p := &Profile{Degree: int(m.Degree), Uncounted: m.Uncounted}
	copy(p.Broken[:], m.Broken)
	for _, from := range m.Shape {
		shape, err := decodeShape(from, s)
		if err != nil {
			return nil, err
		}
		if n := len(p.Shapes); n > 0 && p.Shapes[n-1].Routine >= shape.Routine {
			return nil, fmt.Errorf("the shape of routine %d is not in its place", shape.Routine)
		}
		p.Shapes = append(p.Shapes, shape)
	}
	for i, from := range m.Extension {
		x := Extension{Routine: int(from.Routine), Loop: int(from.Loop) - 1}
		shape := p.ShapeOf(x.Routine)
		if shape == nil || x.Loop >= len(shape.Loops) || len(from.Block) == 0 {
			return nil, fmt.Errorf("extension %d is of no shape", i)
		}
		if x.Blocks, err = blocksOf(from.Block, &s.Routines[x.Routine]); err != nil {
			return nil, err
		}
		p.Extensions = append(p.Extensions, x)
	}
	if len(m.GoesOn) != len(m.Path) || len(m.Count) != len(m.Path) {
		return nil, fmt.Errorf("it has %d paths, %d extensions of these and %d counts",
			len(m.Path), len(m.GoesOn), len(m.Count))
	}
	for i, sym := range m.Path {
		c := Count{sym, int(m.GoesOn[i]), m.Count[i]}
		if c.Extension >= len(p.Extensions) {
			return nil, fmt.Errorf("extension %d is none of %d", c.Extension, len(p.Extensions))
		}
		if err := checkPath(sym, s); err != nil {
			return nil, err
		}
		p.Counts = append(p.Counts, c)
	}
	for _, sym := range p.Uncounted {
		if err := checkPath(sym, s); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// checkPath makes sure that a symbol is a path that others may follow.
func checkPath(sym uint32, s *wpp.Snapshot) error {
	if int64(sym) >= int64(len(s.Symbols)) {
		return fmt.Errorf("symbol %d is none of %d", sym, len(s.Symbols))
	}
	symbol := &s.Symbols[sym]
	if _, ok := KindOf(symbol.End); !ok || !IsWhole(symbol) {
		return fmt.Errorf("symbol %d is no path that goes on elsewhere", sym)
	}
	return nil
}

func decodeShape(from *OverlappedSection_Shape, s *wpp.Snapshot) (to Shape, err error) {
	if int64(from.Routine) >= int64(len(s.Routines)) {
		return to, fmt.Errorf("routine %d is none of %d", from.Routine, len(s.Routines))
	}
	to.Routine = int(from.Routine)
	r := &s.Routines[to.Routine]
	if to.Predicates, err = ascending(from.Predicate, r); err != nil {
		return to, err
	}
	for _, loop := range from.Loop {
		l := Loop{Head: int(loop.Head), LeftOut: loop.LeftOut}
		if l.Blocks, err = ascending(loop.Block, r); err != nil {
			return to, err
		}
		if n := len(to.Loops); l.Head >= len(r.Blocks) || n > 0 && to.Loops[n-1].Head >= l.Head ||
			l.LeftOut == "" && !l.Has(l.Head) {
			return to, fmt.Errorf("the loop at block %d of %s is not in its place", l.Head, r.Name)
		}
		to.Loops = append(to.Loops, l)
	}
	blocks, err := ascending(from.Call, r)
	if err != nil {
		return to, err
	}
	if len(from.Callee) != len(blocks) {
		return to, fmt.Errorf("%s has %d calls of %d routines", r.Name, len(blocks),
			len(from.Callee))
	}
	for i, callee := range from.Callee {
		if int64(callee) >= int64(len(s.Routines)) {
			return to, fmt.Errorf("routine %d is none of %d", callee, len(s.Routines))
		}
		to.Calls = append(to.Calls, Call{blocks[i], int(callee)})
	}
	return to, nil
}

// blocksOf returns blocks of a routine.
func blocksOf(list []uint32, r *wpp.Routine) ([]int, error) {
	var to []int
	for _, b := range list {
		if int64(b) >= int64(len(r.Blocks)) {
			return nil, fmt.Errorf("block %d is none of %d of %s", b, len(r.Blocks), r.Name)
		}
		to = append(to, int(b))
	}
	return to, nil
}

func ascending(list []uint32, r *wpp.Routine) ([]int, error) {
	to, err := blocksOf(list, r)
	for i := 1; i < len(to) && err == nil; i++ {
		if to[i-1] >= to[i] {
			err = fmt.Errorf("blocks %d and %d of %s are not in their order", to[i-1], to[i],
				r.Name)
		}
	}
	return to, err
}
