package bounds

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"wpptrace/compress/ops"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/overlapped"
	"wpptrace/internal/saturating"
	"wpptrace/query"
)

// A Place is where interesting paths cross a back edge, a call or a return.
type Place struct {
	Kind    overlapped.Kind
	Routine int // that has the loop, or the call: index in Snapshot.Routines
	Block   int // the loop's head, the block that ends with the call, or the one behind it
	Callee  int // the routine that is called; of a loop: -1
}

func (p Place) compare(q Place) int {
	return cmp.Or(cmp.Compare(p.Kind, q.Kind), cmp.Compare(p.Routine, q.Routine),
		cmp.Compare(p.Block, q.Block), cmp.Compare(p.Callee, q.Callee))
}

// Routines are those that p and q are paths of.
func (p Place) Routines() (first, second int) {
	switch p.Kind {
	case overlapped.Into:
		return p.Routine, p.Callee
	case overlapped.Back:
		return p.Callee, p.Routine
	}
	return p.Routine, p.Routine
}

// A Model is all interesting paths of a snapshot, and what is known of how often they ran. It is
// read-only once it is made, but for what TakeTruth adds, and then safe for concurrent use. Memory
// is in proportion to the paths that ran and to the counts, not to the pairs that may have run.
type Model struct {
	Snapshot *wpp.Snapshot
	Profile  *overlapped.Profile
	groups   []*group // by their places
	unsure   []Place  // where pairs may be missing, though they are not left out
	known    bool     // the truth is
}

// A group has the paths of one place.
type group struct {
	Place
	loop          *overlapped.Loop // nil: of a call or a return
	first, second list
	counts        map[counted]uint64
	degree        int                 // the greatest useful one
	leftOut       string              // why it has no bounds; "" if it has
	truth         map[[2]int32]uint64 // by first and second
}

func newGroup(p Place) *group {
	return &group{Place: p, counts: map[counted]uint64{}, first: list{at: map[string]int{}},
		second: list{at: map[string]int{}}}
}

// A list has paths, or what of them is within a loop, each once.
type list struct {
	parts []part
	at    map[string]int // by its spelling
}

type part struct {
	blocks []int
	ran    uint64
}

// A counted path is one of a group's first, and an extension, spelled.
type counted struct {
	first     int
	extension string
}

func (l *list) find(blocks []int) int {
	spelled := spell(blocks)
	i, ok := l.at[spelled]
	if !ok {
		i = len(l.parts)
		l.at[spelled] = i
		l.parts = append(l.parts, part{blocks: blocks})
	}
	return i
}

func (l *list) add(blocks []int, n uint64) {
	p := &l.parts[l.find(blocks)]
	p.ran = saturating.Add(p.ran, n)
}

func (l *list) has(blocks []int) bool {
	_, ok := l.at[spell(blocks)]
	return ok
}

// spell makes a key of blocks.
func spell(blocks []int) string {
	key := make([]byte, 0, 2*len(blocks))
	for _, b := range blocks {
		key = binary.AppendUvarint(key, uint64(b))
	}
	return string(key)
}

// New makes the model of a snapshot, and of a profile of the same run: of Follow, or overlapped.Of
// the same snapshot. It fails where the profile has what the snapshot cannot have. It takes time
// and memory in proportion to the alphabet, the grammars and the profile.
func New(s *wpp.Snapshot, p *overlapped.Profile) (*Model, error) {
	ran, err := query.NewFrequencies(s)
	if err != nil {
		return nil, err
	}
	m := &Model{Snapshot: s, Profile: p}
	at := map[Place]*group{}
	for _, c := range p.Counts {
		if err := m.count(at, c); err != nil {
			return nil, err
		}
	}
	for _, sym := range p.Uncounted {
		m.leaveOut(at, sym)
	}
	m.addLeftOut(at, ran)
	m.addUnsure(at)
	for _, g := range at {
		m.groups = append(m.groups, g)
	}
	slices.SortFunc(m.groups, func(a, b *group) int { return a.compare(b.Place) })
	m.addPaths(ran)
	for _, g := range m.groups {
		_, second := g.Routines()
		g.degree = apart(p.ShapeOf(second), g.second.parts)
	}
	return m, nil
}

// count adds a count to its group.
func (m *Model) count(at map[Place]*group, c overlapped.Count) error {
	place, err := m.placeOf(c)
	if err != nil {
		return fmt.Errorf("overlapping path of symbol %d: %w", c.Path, err)
	}
	g := at[place]
	if g == nil {
		g = newGroup(place)
		if place.Kind == overlapped.OverLoop {
			g.loop = m.Profile.ShapeOf(place.Routine).CountedLoop(place.Block)
		}
		at[place] = g
	}
	first := m.Snapshot.Symbols[c.Path].Blocks
	if g.loop != nil {
		first = g.loop.Before(first)
	}
	x := &m.Profile.Extensions[c.Extension]
	of := counted{g.first.find(first), spell(x.Blocks)}
	g.counts[of] = saturating.Add(g.counts[of], c.N)
	return nil
}

// placeOf returns where an overlapping path crosses what ends its first path.
func (m *Model) placeOf(c overlapped.Count) (Place, error) {
	p, x := &m.Snapshot.Symbols[c.Path], &m.Profile.Extensions[c.Extension]
	kind, ok := overlapped.KindOf(p.End)
	shape := m.Profile.ShapeOf(x.Routine)
	switch {
	case !ok || !overlapped.IsWhole(p):
		return Place{}, errors.New("it does not go on")
	case shape == nil || m.Profile.ShapeOf(p.Routine) == nil:
		return Place{}, errors.New("its routine is not known")
	case kind == overlapped.Into:
		return Place{kind, p.Routine, p.Blocks[len(p.Blocks)-1], x.Routine}, nil
	case kind == overlapped.Back:
		return Place{kind, x.Routine, x.Blocks[0], p.Routine}, nil
	case p.Routine != x.Routine || shape.CountedLoop(x.Blocks[0]) == nil:
		return Place{}, errors.New("it is in no loop")
	}
	return Place{kind, x.Routine, x.Blocks[0], -1}, nil
}

// leaveOut notes where a path is the first of a pair that may not be counted.
func (m *Model) leaveOut(at map[Place]*group, sym uint32) {
	p := &m.Snapshot.Symbols[sym]
	kind, _ := overlapped.KindOf(p.End)
	for place, g := range at {
		if first, _ := place.Routines(); place.Kind == kind && first == p.Routine {
			g.leftOut = "not all pairs are counted, for there are too many"
		}
	}
}

// addLeftOut adds the loops that ran and are left out.
func (m *Model) addLeftOut(at map[Place]*group, ran *query.Frequencies) {
	for sym := range m.Snapshot.Symbols {
		y := &m.Snapshot.Symbols[sym]
		if !overlapped.IsWhole(y) || y.Start != ops.StartLoop || ran.Symbol(uint32(sym)) == 0 {
			continue
		}
		shape := m.Profile.ShapeOf(y.Routine)
		if shape == nil {
			continue
		}
		if l := shape.LoopAt(y.Blocks[0]); l >= 0 && shape.Loops[l].LeftOut != "" {
			place := Place{overlapped.OverLoop, y.Routine, y.Blocks[0], -1}
			at[place] = newGroup(place)
			at[place].loop, at[place].leftOut = &shape.Loops[l], shape.Loops[l].LeftOut
		}
	}
}

// addUnsure leaves out the places where pairs are missing. Of a snapshot that does not say how
// activations began, calls through pointers are no places.
func (m *Model) addUnsure(at map[Place]*group) {
	for _, u := range m.Profile.Unsure {
		place := placeOfUnsure(m.Snapshot, u)
		if u.Reason != overlapped.Mixed {
			m.unsure = append(m.unsure, place)
			continue
		}
		at[place] = newGroup(place)
		at[place].leftOut = u.Reason.String()
	}
}

// addPaths adds to the groups the paths that ran and may be of their pairs, with how often they
// ran.
func (m *Model) addPaths(ran *query.Frequencies) {
	const any = -1
	firsts, seconds := map[Place][]*group{}, map[Place][]*group{}
	for _, g := range m.groups {
		if g.leftOut != "" {
			continue
		}
		first, second := g.Place, g.Place
		switch g.Kind {
		case overlapped.OverLoop:
			first.Block = any
		case overlapped.Into:
			first.Callee, second.Routine, second.Block = any, any, any
		case overlapped.Back:
			first.Routine, first.Block, second.Callee = any, any, any
		}
		firsts[first] = append(firsts[first], g)
		seconds[second] = append(seconds[second], g)
	}
	for sym := range m.Snapshot.Symbols {
		y, n := &m.Snapshot.Symbols[sym], ran.Symbol(uint32(sym))
		if n == 0 || !overlapped.IsWhole(y) {
			continue
		}
		begin, end := y.Blocks[0], y.Blocks[len(y.Blocks)-1]
		switch y.Start {
		case ops.StartLoop:
			for _, g := range seconds[Place{overlapped.OverLoop, y.Routine, begin, any}] {
				g.second.add(g.loop.After(y.Blocks), n)
			}
		case ops.StartEntry:
			for _, g := range seconds[Place{overlapped.Into, any, any, y.Routine}] {
				g.second.add(y.Blocks, n)
			}
		case ops.StartCall:
			for _, g := range seconds[Place{overlapped.Back, y.Routine, begin, any}] {
				g.second.add(y.Blocks, n)
			}
		}
		switch y.End {
		case ops.EndLoop: // of which loop is not known: of those that it is counted in
			for _, g := range firsts[Place{overlapped.OverLoop, y.Routine, any, any}] {
				if g.loop.Has(end) && g.first.has(g.loop.Before(y.Blocks)) {
					g.first.add(g.loop.Before(y.Blocks), n)
				}
			}
		case ops.EndCall:
			for _, g := range firsts[Place{overlapped.Into, y.Routine, end, any}] {
				g.first.add(y.Blocks, n)
			}
		case ops.EndReturn:
			for _, g := range firsts[Place{overlapped.Back, any, any, y.Routine}] {
				g.first.add(y.Blocks, n)
			}
		}
	}
}

// Degree is the greatest useful degree of what ran: at it, all paths that ran are told apart.
func (m *Model) Degree() (degree int) {
	for _, g := range m.groups {
		degree = max(degree, g.degree)
	}
	return degree
}

// unspell undoes spell.
func unspell(key string) (blocks []int) {
	for rest := []byte(key); len(rest) > 0; {
		b, n := binary.Uvarint(rest)
		blocks, rest = append(blocks, int(b)), rest[n:]
	}
	return blocks
}

// apart returns the least degree that tells some paths that begin at one place apart. It takes time
// in proportion to all of their blocks, and to sort them.
func apart(s *overlapped.Shape, paths []part) (degree int) {
	order := make([][]int, len(paths))
	for i := range paths {
		order[i] = paths[i].blocks
	}
	slices.SortFunc(order, slices.Compare)
	for i := 1; i < len(order); i++ {
		common := 0
		for j := 0; j < min(len(order[i-1]), len(order[i])) && order[i-1][j] == order[i][j]; j++ {
			if s.IsPredicate(order[i][j]) {
				common++
			}
		}
		degree = max(degree, common)
	}
	return degree
}
