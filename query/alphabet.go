package query

import (
	"bytes"
	"encoding/binary"
	"maps"
	"slices"

	"wpptrace/compress/ops"
	"wpptrace/compress/wpp"
)

// A routineIdentity is what a routine is known by in any snapshot of the build.
type routineIdentity struct {
	build   string
	routine string // of an image without a build id
	entry   uint64
}

// A nthRoutine numbers, from 1, the routines of one snapshot that have the same identity, because
// their entries, which are not known, are 0.
type nthRoutine struct {
	routineIdentity
	nth int
}

// An identity is what a path is known by in any snapshot of the build. The numbers of partial paths
// are each snapshot's own: they are known by their blocks.
type identity struct {
	path      uint64
	routine   uint32 // by number
	partial   uint32 // its blocks, by number
	skip, cut uint32
	start     ops.Start
	end       ops.End
}

// A Place is a symbol of one of two snapshots.
type Place struct {
	Snapshot int // 0: the first, 1: the second
	Symbol   uint32
}

// An alphabet numbers the paths of two snapshots together, and the marks, of which each is like no
// other.
type alphabet struct {
	of     [2][]uint32 // symbol of a snapshot -> number
	cost   []uint64    // by number: instructions; 0 for marks
	isMark []bool
	first  []Place // by number: where it is met first
	// by number: the routine, which both snapshots have the same number of; 0 for marks
	routine []uint32
	// by number: the other snapshot does not have its image, or leaves its routine out
	alone  []bool
	differ bool // there are such
}

func newAlphabet(a, b *wpp.Snapshot) *alphabet {
	x := &alphabet{}
	routines, partial := map[nthRoutine]uint32{}, map[string]uint32{}
	number := make(map[identity]uint32, max(len(a.Symbols), len(b.Symbols)))
	both := [2]*wpp.Snapshot{a, b}
	var routineOf [2][]uint32
	var leftOut [2]map[uint32]bool
	for i, s := range both {
		routineOf[i], leftOut[i] = numberRoutines(routines, s)
	}
	for i, s := range both {
		x.of[i] = make([]uint32, len(s.Symbols))
		for sym := range s.Symbols {
			p, next := &s.Symbols[sym], uint32(len(x.cost))
			n := next
			if !p.IsMark {
				id := identity{path: p.Path, routine: routineOf[i][p.Routine], skip: uint32(p.Skip),
					cut: uint32(p.Cut), start: p.Start, end: p.End}
				if r := &s.Routines[p.Routine]; p.Path >= r.Paths && len(r.Blocks) > 0 {
					id.path, id.partial = r.Paths, numberOf(partial, blocksOf(r, p))
				}
				known, ok := number[id]
				if ok {
					n = known
				} else {
					number[id] = n
				}
			}
			if x.of[i][sym] = n; n == next {
				x.cost = append(x.cost, s.SymbolCost(uint32(sym)))
				x.isMark = append(x.isMark, p.IsMark)
				var routine uint32
				if !p.IsMark {
					routine = routineOf[i][p.Routine]
				}
				x.routine = append(x.routine, routine)
				x.first = append(x.first, Place{i, uint32(sym)})
				x.alone = append(x.alone,
					!p.IsMark &&
						(leftOut[1-i][routineOf[i][p.Routine]] ||
							!hasBuild(both[1-i], s.Images[s.Routines[p.Routine].Image].BuildID)))
			}
		}
	}
	x.differ = slices.Contains(x.alone, true)
	return x
}

// isUnseen reports whether one of the snapshots may have run some paths unseen: it does not trace
// one of them or, where there are several, something that the other one has between paths.
func (x *alphabet) isUnseen(symbols []uint32) bool {
	return len(symbols) > 1 && x.differ || x.isAlone(symbols)
}

// isAlone reports whether one of the snapshots does not trace one of some paths.
func (x *alphabet) isAlone(symbols []uint32) bool {
	return slices.ContainsFunc(symbols, func(sym uint32) bool { return x.alone[sym] })
}

// numberRoutines numbers the identities of a snapshot's routines, and says which of them it leaves
// out.
func numberRoutines(routines map[nthRoutine]uint32,
	s *wpp.Snapshot) (routineOf []uint32, leftOut map[uint32]bool) {
	routineOf, leftOut = make([]uint32, len(s.Routines)), make(map[uint32]bool)
	met := make(map[routineIdentity]int)
	for k := range s.Routines {
		h := identityOf(s, &s.Routines[k])
		met[h]++
		routineOf[k] = numberOf(routines, nthRoutine{h, met[h]})
		if s.Routines[k].LeftOut != "" {
			leftOut[routineOf[k]] = true
		}
	}
	return routineOf, leftOut
}

// hasBuild reports whether a snapshot has an image of this build id, or there is none to go by.
func hasBuild(s *wpp.Snapshot, id []byte) bool {
	return len(id) == 0 || slices.ContainsFunc(s.Images,
		func(im wpp.Image) bool { return bytes.Equal(im.BuildID, id) })
}

// paths are the sequences of one path.
func (x *alphabet) paths() (list [][]uint32) {
	all := make([]uint32, len(x.isMark))
	for sym, isMark := range x.isMark {
		all[sym] = uint32(sym)
		if !isMark {
			list = append(list, all[sym:sym+1:sym+1])
		}
	}
	return list
}

// routines are the paths of each routine.
func (x *alphabet) routines() [][]uint32 {
	of := map[uint32][]uint32{}
	for sym, r := range x.routine {
		if r > 0 {
			of[r] = append(of[r], uint32(sym))
		}
	}
	return slices.SortedFunc(maps.Values(of), slices.Compare)
}

// numberOf numbers the keys of a map from 1 as they come.
func numberOf[K comparable](numbers map[K]uint32, key K) uint32 {
	n, ok := numbers[key]
	if !ok {
		n = uint32(len(numbers) + 1)
		numbers[key] = n
	}
	return n
}

func identityOf(s *wpp.Snapshot, r *wpp.Routine) routineIdentity {
	h := routineIdentity{build: string(s.Images[r.Image].BuildID), entry: r.Entry}
	if h.build == "" {
		h.routine = r.Name
	}
	return h
}

// blocksOf are the addresses of a path's blocks.
func blocksOf(r *wpp.Routine, p *wpp.Symbol) string {
	var blocks []byte
	for _, b := range p.Blocks {
		blocks = binary.LittleEndian.AppendUint64(blocks, r.Blocks[b].Addr)
	}
	return string(blocks)
}
