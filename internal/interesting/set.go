package interesting

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/covered"
	"wpptrace/compress/wpp/pathprofile"
	"wpptrace/compress/wpp/store"
	"wpptrace/internal/remedy"
	"wpptrace/internal/saturating"
	"wpptrace/loader/cfg"
	"wpptrace/loader/paths"
	"wpptrace/loader/plan"
	"wpptrace/loader/privilege"
	"wpptrace/query"
	"wpptrace/query/names"
	"wpptrace/query/rules"
)

// A Set is the interesting paths of a plan.
type Set struct {
	Routines []RoutineSet // that have some, in the order of the plan
	Untraced int          // recorded paths of routines that the plan does not trace, or has not
	Unknown  int          // recorded as paths of routines that have no such path here
	Example  string       // one that is unknown
	TooMany  int          // routines that have too many paths for all to be of interest

	ran, hits float64      // how often they ran, and what hits that took by the plan
	all       []recorded   // paths of routines that the plan traces, by routine and number
	unknownIn map[int]bool // routines with unknown paths
}

// A RoutineSet is the interesting paths of a routine.
type RoutineSet struct {
	Routine   *plan.Routine
	Name      string // that no other routine of the snapshot has
	Numbering *paths.Numbering
	Paths     []uint64 // their numbers, rising
}

// Read returns the paths that are chosen of a plan's programs. The snapshot is opened as the user.
// It fails where the snapshot is of other builds. Cost: that of reading it, and linear in the plan;
// with a pattern, that of rules.Occurring.
func Read(p *plan.Plan, c Choice) (*Set, error) {
	var s *wpp.Snapshot
	path := c.Snapshot
	err := privilege.AsUser(func() (err error) {
		s, err = store.ReadFile(path, pathprofile.Kind, covered.Kind)
		return err
	})
	if err != nil { // be it that it is cut off: what ran later is of interest, too
		return nil, err
	}
	if err := covered.CheckPaths(path, s); err != nil {
		return nil, err
	}
	set, err := Of(p, s, c)
	if err != nil {
		return nil, fmt.Errorf("find the paths of %s: %w", path, err)
	}
	return set, nil
}

// ReadAll is Read for several snapshots: all of their paths together.
func ReadAll(p *plan.Plan, files []string) (*Set, error) {
	all := &Set{unknownIn: map[int]bool{}}
	for _, path := range files {
		one, err := Read(p, Choice{Snapshot: path})
		if err != nil {
			return nil, err
		}
		all.Untraced, all.Unknown = all.Untraced+one.Untraced, all.Unknown+one.Unknown
		all.Example = cmp.Or(all.Example, one.Example)
		maps.Copy(all.unknownIn, one.unknownIn)
		all.all = append(all.all, one.all...)
	}
	slices.SortStableFunc(all.all, recorded.compare)
	united := all.all[:0]
	for _, x := range all.all {
		if n := len(united); n > 0 && united[n-1].compare(x) == 0 {
			united[n-1].ran = saturating.Add(united[n-1].ran, x.ran)
			united[n-1].cost = saturating.Add(united[n-1].cost, x.cost)
			continue
		}
		united = append(united, x)
	}
	all.all = united
	all.add(united)
	return all, nil
}

// Knows reports whether all that was recorded of a routine are paths of it.
func (s *Set) Knows(r *plan.Routine) bool { return !s.unknownIn[r.ID] }

// Of is Read for a snapshot in memory. Hottest are the paths that most instructions ran in.
func Of(p *plan.Plan, s *wpp.Snapshot, c Choice) (*Set, error) {
	routines, err := shared(p, s)
	if err != nil {
		return nil, err
	}
	counts, err := query.NewFrequencies(s)
	if err != nil {
		return nil, err
	}
	chosen, err := c.symbols(s)
	if err != nil {
		return nil, err
	}
	set, named := &Set{unknownIn: map[int]bool{}}, names.Of(s)
	var found, hot []recorded
	for i := range s.Symbols {
		y := &s.Symbols[i]
		if y.IsMark || y.Path >= s.Routines[y.Routine].Paths || counts.Symbol(uint32(i)) == 0 {
			continue // no path, or a part of one
		}
		r := routines[y.Routine]
		if r == nil {
			set.Untraced++
			continue
		}
		blocks, err := r.find(&s.Routines[y.Routine], y)
		switch {
		case err != nil:
			return nil, err
		case blocks == nil:
			set.Unknown++
			set.unknownIn[r.ID] = true
			set.Example = cmp.Or(set.Example, fmt.Sprintf("%s#%d", named.Routine(y.Routine),
				y.Path))
		default:
			ran := counts.Symbol(uint32(i))
			found = append(found, recorded{r, named.Routine(y.Routine), y.Path, blocks, ran,
				r.cost(ran, blocks)})
			if chosen == nil || chosen[uint32(i)] {
				hot = append(hot, found[len(found)-1])
			}
		}
	}
	slices.SortFunc(hot, func(a, b recorded) int {
		return cmp.Or(cmp.Compare(b.cost, a.cost), a.compare(b))
	})
	if c.Hot > 0 {
		hot = hot[:min(c.Hot, len(hot))]
	}
	slices.SortFunc(found, recorded.compare)
	slices.SortFunc(hot, recorded.compare)
	set.all = found
	set.add(hot)
	if c.All {
		return set, set.addAll(routines, named)
	}
	return set, nil
}

// symbols are those of a snapshot that the pattern names; nil: there is none.
func (c *Choice) symbols(s *wpp.Snapshot) (map[uint32]bool, error) {
	if c.Pattern == "" {
		return nil, nil
	}
	list, err := rules.Occurring(s, c.Pattern, gap)
	if err != nil {
		return nil, err
	}
	chosen := map[uint32]bool{}
	for _, sym := range list {
		chosen[sym] = true
	}
	return chosen, nil
}

// addAll has all paths of routines be of interest, where these are not too many.
func (s *Set) addAll(routines []*known, named *names.Names) error {
	for i, r := range routines {
		if r == nil {
			continue
		}
		if err := r.number(); err != nil {
			return err
		}
		if r.n.Total > mostAll {
			s.TooMany++
			continue
		}
		at, found := slices.BinarySearchFunc(s.Routines, r.ID,
			func(x RoutineSet, id int) int { return cmp.Compare(x.Routine.ID, id) })
		if !found {
			s.Routines = slices.Insert(s.Routines, at,
				RoutineSet{Routine: r.Routine, Name: named.Routine(i), Numbering: r.n})
		}
		s.Routines[at].Paths = nil
		for number := range r.n.Total {
			s.Routines[at].Paths = append(s.Routines[at].Paths, number)
		}
	}
	return nil
}

// A recorded path is one of a routine of the plan.
type recorded struct {
	routine   *known
	name      string // of the routine, in the snapshot
	number    uint64
	blocks    []int
	ran, cost uint64 // how often, and in how many instructions
}

func (x recorded) compare(y recorded) int {
	return cmp.Or(cmp.Compare(x.routine.ID, y.routine.ID), cmp.Compare(x.number, y.number))
}

func (s *Set) add(list []recorded) {
	for _, x := range list {
		last := len(s.Routines) - 1
		if last < 0 || s.Routines[last].Routine != x.routine.Routine {
			s.Routines = append(s.Routines,
				RoutineSet{Routine: x.routine.Routine, Name: x.name, Numbering: x.routine.n})
			last++
		}
		s.Routines[last].Paths = append(s.Routines[last].Paths, x.number)
		s.ran += float64(x.ran)
		for _, b := range x.blocks {
			if x.routine.Site(b) != nil {
				s.hits += float64(x.ran)
			}
		}
	}
}

// HitsPerPath is how many probes of the plan are hit for each interesting path that ran; 0 where
// none did.
func (s *Set) HitsPerPath() float64 {
	if s.ran == 0 {
		return 0
	}
	return s.hits / s.ran
}

// A known routine is one of a plan, with its paths.
type known struct {
	*plan.Routine
	n *paths.Numbering // nil: it was not needed yet
}

// shared returns, for each routine of a snapshot, that of the plan which it is, or nil where the
// plan does not trace it.
func shared(p *plan.Plan, s *wpp.Snapshot) ([]*known, error) {
	type place struct {
		image int
		entry uint64
	}
	traced := map[place]*known{}
	some := false
	for i := range p.Parts {
		image := imageOf(s, p.Parts[i].Program)
		if image < 0 {
			continue
		}
		some = true
		for _, r := range p.Parts[i].Routines {
			if r.Traced() {
				traced[place{image, r.Addr}] = &known{Routine: r}
			}
		}
	}
	if !some {
		if im := p.Parts[0].Program.Image; im.BuildID == "" {
			return nil, remedy.Errorf(remedy.LinkInteresting, "%s has no build id, so that nothing "+
				"says whether that is a recording of it", im.Name)
		}
		return nil, remedy.Errorf(remedy.OwnInteresting, "that is a recording of another build")
	}
	routines := make([]*known, len(s.Routines))
	for i := range s.Routines {
		routines[i] = traced[place{s.Routines[i].Image, s.Routines[i].Entry}]
	}
	return routines, nil
}

// imageOf returns the index in a snapshot of the image that a program is of, or -1.
func imageOf(s *wpp.Snapshot, program *cfg.Program) int {
	id := program.Image.BuildID
	return slices.IndexFunc(s.Images,
		func(im wpp.Image) bool { return id != "" && hex.EncodeToString(im.BuildID) == id })
}

// number numbers its paths, unless it has.
func (k *known) number() (err error) {
	if k.n == nil {
		k.n, err = paths.Number(k.Routine.Routine)
	}
	return err
}

// find returns the blocks of a recorded path, or nil where the routine has no such path of that
// number.
func (k *known) find(r *wpp.Routine, y *wpp.Symbol) (blocks []int, err error) {
	if err := k.number(); err != nil {
		return nil, err
	}
	path, err := k.n.Decode(y.Path)
	if err != nil || r.Paths != k.n.Total || uint8(path.Start) != uint8(y.Start) ||
		uint8(path.End) != uint8(y.End) || !slices.EqualFunc(path.Blocks, y.Blocks,
		func(here, there int) bool { return k.Blocks[here].Lo == r.Blocks[there].Addr }) {
		return nil, nil
	}
	return path.Blocks, nil
}

// cost is in how many instructions a path ran.
func (k *known) cost(ran uint64, blocks []int) uint64 {
	n := 0
	for _, b := range blocks {
		n += len(k.Blocks[b].Insns)
	}
	return saturating.Mul(ran, uint64(n))
}
