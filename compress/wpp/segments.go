package wpp

import (
	"fmt"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
)

// keptBytes bounds what is kept in memory of the segments of a thread; the one that was needed last
// is kept in any case.
const keptBytes = 64 << 20

// segments are the grammars of a thread's segments under one start rule. They are decoded when they
// are needed, and some are kept.
type segments struct {
	list   []*Segment
	first  []int    // the number of each one's start rule, then that of rules
	start  []uint32 // the body of the start rule
	length uint64

	current atomic.Pointer[loaded]
	mutex   sync.Mutex
	kept    []*loaded // last used first
}

// A loaded segment is the grammar of one with its rules numbered from first on.
type loaded struct {
	first, end int
	grammar    *Grammar
	bytes      int
}

// A LoadError says that a segment or section of a snapshot could not be read when it was needed:
// the file has changed, or the disk fails.
type LoadError struct {
	Err  error
	Path string // of the file; "": not known
}

func (e *LoadError) Error() string {
	if e.Path == "" {
		return "snapshot " + e.Err.Error()
	}
	return fmt.Sprintf("snapshot %s %v: copy it again from where it was recorded, or record anew",
		e.Path, e.Err)
}
func (e *LoadError) Unwrap() error { return e.Err }

func (s *Segment) loadError(err error) *LoadError {
	return &LoadError{Err: err, Path: s.source.Name()}
}

// Recover makes an error of the panic of a method of Grammar whose segment cannot be read: whoever
// asks questions of a snapshot that was read from a file defers it.
func Recover(err *error) {
	switch p := recover().(type) {
	case nil:
	case *LoadError:
		*err = p
	default:
		panic(p)
	}
}

// of returns the segment of a rule that is not the start rule.
func (s *segments) of(rule int) *loaded {
	if l := s.current.Load(); l != nil && l.first <= rule && rule < l.end {
		return l
	}
	return s.fetch(rule)
}

func (s *segments) fetch(rule int) *loaded {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	i := slices.IndexFunc(s.kept, func(l *loaded) bool { return l.first <= rule && rule < l.end })
	var l *loaded
	if i >= 0 {
		l = s.kept[i]
		s.kept = slices.Delete(s.kept, i, i+1)
	} else {
		i := sort.SearchInts(s.first, rule+1) - 1
		s.makeRoom(s.list[i].bytes())
		l = s.load(i)
	}
	s.kept = slices.Insert(s.kept, 0, l)
	s.current.Store(l)
	return l
}

// makeRoom forgets segments so that one more fits.
func (s *segments) makeRoom(more int) {
	for _, l := range s.kept {
		more += l.bytes
	}
	for n := len(s.kept); n > 0 && more > keptBytes; n-- {
		more -= s.kept[n-1].bytes
		s.kept[n-1] = nil
		s.kept = s.kept[:n-1]
	}
	s.current.Store(nil)
}

func (s *segments) load(i int) *loaded {
	g, err := s.list[i].Load()
	if err != nil {
		panic(s.list[i].loadError(err))
	}
	g = g.renumbered(s.first[i], s.list[i].grammar != nil)
	return &loaded{first: s.first[i], end: s.first[i+1], grammar: g, bytes: s.list[i].bytes()}
}

// bytes is about what the segment takes in memory.
func (s *Segment) bytes() int {
	const eachSymbol, eachRule = 4, 48
	return int(eachSymbol*s.size.Symbols + eachRule*s.size.Rules)
}

// renumbered returns a grammar whose bodies name its rules by numbers from first on. It changes the
// bodies, unless it has to keep them.
func (g *Grammar) renumbered(first int, keep bool) *Grammar {
	bodies := g.bodies
	if keep {
		bodies = make([][]uint32, len(g.bodies))
	}
	for r, body := range g.bodies {
		if keep {
			body = slices.Clone(body)
			bodies[r] = body
		}
		for i, v := range body {
			if IsRule(v) {
				body[i] = RuleSymbol(first + RuleOf(v))
			}
		}
	}
	return &Grammar{bodies: bodies, order: g.order, lengths: g.lengths, uses: g.uses}
}

func (s *segments) order() []int {
	order := []int{0} // what a segment declares is believed when it has been read
	for i := range s.list {
		first := s.first[i]
		for _, r := range s.of(first).grammar.order {
			order = append(order, first+r)
		}
	}
	return order
}

func (s *segments) symbols() int {
	n := len(s.list)
	for _, x := range s.list {
		n += int(x.size.Symbols)
	}
	return n
}
