package values

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"wpptrace/compress/wet"
	"wpptrace/compress/wpp"
	"wpptrace/query"
	"wpptrace/query/names"
	"wpptrace/query/profile"
)

// Places are the instructions that a text stands for: FILE:LINE all of a source line, also those
// that are inlined elsewhere; ROUTINE+OFFSET one, by its distance from the routine's entry, bytes
// in hex; ROUTINE its first. They are in the order of their addresses. It
// fails where there is none in a routine that ran.
func Places(s *wpp.Snapshot, text string) (list []Instruction, err error) {
	defer wpp.Recover(&err)
	if file, line, ok := cutLine(text); ok {
		return ofLine(s, file, line)
	}
	name, offset := text, uint64(0)
	if before, behind, ok := cutLast(text, '+'); ok {
		n, err := strconv.ParseUint(strings.TrimPrefix(behind, "0x"), 16, 64)
		if err == nil { // else the name of an operator
			name, offset = before, n
		}
	}
	routines, err := names.Of(s).Routines(name)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", names.Printable(text), err)
	}
	for _, r := range routines {
		if at := s.Routines[r].Entry + offset; isInstruction(&s.Routines[r], at) {
			list = append(list, Instruction{r, at})
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("find %s: no instruction that ran begins there: dump --as insns "+
			"lists those", names.Printable(text))
	}
	return list, nil
}

// IsLine reports whether a text stands for a source line: see Places.
func IsLine(text string) bool {
	_, _, ok := cutLine(text)
	return ok
}

func cutLine(text string) (file string, line int, ok bool) {
	file, number, ok := cutLast(text, ':')
	line, err := strconv.Atoi(number)
	return file, line, ok && err == nil
}

func cutLast(text string, at byte) (before, behind string, found bool) {
	i := strings.LastIndexByte(text, at)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+1:], true
}

func isInstruction(r *wpp.Routine, addr uint64) bool {
	for i := range r.Blocks {
		at := r.Blocks[i].Addr
		for _, n := range r.Blocks[i].Lengths {
			if at == addr {
				return true
			}
			at += uint64(n)
		}
	}
	return false
}

func ofLine(s *wpp.Snapshot, file string, line int) (list []Instruction, err error) {
	found, err := profile.SourceFile(s, file)
	if err != nil {
		return nil, fmt.Errorf("find %s:%d: %w", names.Printable(file), line, err)
	}
	for r := range s.Routines {
		for i := range s.Routines[r].Blocks {
			b := &s.Routines[r].Blocks[i]
			at := b.Addr
			for k, n := range b.Lengths {
				x := SpanOf(b, k)
				if x.Line == line && path.Clean(s.Files[x.File]) == found {
					list = append(list, Instruction{r, at})
				}
				at += uint64(n)
			}
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("find %s:%d: no code of that line ran: hot --lines lists those "+
			"that did", names.Printable(file), line)
	}
	slices.SortFunc(list, func(a, b Instruction) int { return cmp.Compare(a.Addr, b.Addr) })
	return list, nil
}

// SpanOf is where an instruction of a block is in the source, in the innermost of the calls that
// are inlined there. Its Line is 0 if that is not known.
func SpanOf(b *wpp.Block, insn int) wpp.Span {
	for _, span := range b.Spans {
		if span.From <= insn && insn < span.To {
			return span
		}
	}
	if len(b.Spans) == 0 && (insn == 0 || b.Line == b.Last) {
		return wpp.Span{File: b.File, Line: b.Line}
	}
	return wpp.Span{}
}

// A Question asks for executions of some instructions.
type Question struct {
	At       []Instruction
	Threads  []int  // ids; none: all
	Instance uint64 // the one with this number, from 1, of each of At; 0: all
}

// Each gives each execution that is asked for to found, with its number among those of the same
// instruction: threads in the order of the snapshot, each in the order of execution. What is found
// is good until found returns, whose error ends it. Of a thread the stream of paths is read once,
// which takes some 10 ns a path, and the segments are replayed that have one of the executions, up
// to the last of these. What is kept meanwhile is some 100 bytes an execution of one segment.
func Each(s *wpp.Snapshot, q *Question,
	found func(instance uint64, e *wet.Executed) error) (err error) {
	defer wpp.Recover(&err)
	if !Has(s) {
		return ErrNone
	}
	threads, err := query.Threads(s, q.Threads)
	if err != nil {
		return err
	}
	f := &finder{snapshot: s, question: q, on: symbolsWith(s, q.At), found: found,
		counts: make([]uint64, len(q.At))}
	for i := range s.Threads {
		if slices.Contains(threads, &s.Threads[i]) {
			if err := f.thread(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// symbolsWith are, by symbol, the indices of the instructions that run when it does: a path is
// acyclic, so that each does once.
func symbolsWith(s *wpp.Snapshot, at []Instruction) map[uint32][]int {
	on := map[uint32][]int{}
	for sym := range s.Symbols {
		p := &s.Symbols[sym]
		if p.IsMark || !slices.ContainsFunc(at,
			func(x Instruction) bool { return x.Routine == p.Routine }) {
			continue
		}
		for addr := range s.Instructions(uint32(sym)) {
			if i := slices.Index(at, Instruction{p.Routine, addr}); i >= 0 {
				on[uint32(sym)] = append(on[uint32(sym)], i)
			}
		}
	}
	return on
}

// A finder goes through the threads.
type finder struct {
	snapshot *wpp.Snapshot
	question *Question
	on       map[uint32][]int
	counts   []uint64 // executions of each instruction, up to where the threads are read
	found    func(uint64, *wet.Executed) error
}

// A visit is a symbol at which something is asked for.
type visit struct {
	position uint64
	first    []uint64 // the numbers of its executions, as of finder.on; 0: not asked for
	on       []int
}

func (f *finder) thread(thread int) error {
	var segments []wet.Segment // those that may have what is asked for
	var visits []visit         // of the first of them
	position := uint64(0)
	for sym := range f.snapshot.Threads[thread].Grammar.Expand(0) {
		if v, ok := f.visit(sym, position); ok {
			var err error
			if segments == nil {
				segments, err = wet.Segments(f.snapshot, thread)
			}
			for err == nil && position >= endOf(segments) {
				visits, err = f.replay(segments, visits)
				segments = segments[1:]
			}
			if err != nil || len(segments) == 0 {
				return err
			}
			visits = append(visits, v)
		}
		position++
	}
	for ; len(visits) > 0 && len(segments) > 0; segments = segments[1:] {
		var err error
		if visits, err = f.replay(segments, visits); err != nil {
			return err
		}
	}
	return nil
}

// visit is what is asked for of a symbol at a position; ok is false if nothing is.
func (f *finder) visit(sym uint32, position uint64) (v visit, ok bool) {
	on := f.on[sym]
	if len(on) == 0 {
		return v, false
	}
	v = visit{position: position, on: on, first: make([]uint64, len(on))}
	for i, at := range on {
		f.counts[at]++
		if n := f.question.Instance; n == 0 || n == f.counts[at] {
			v.first[i], ok = f.counts[at], true
		}
	}
	return v, ok
}

// endOf is the position behind the first of some segments: the next one may begin within the path
// before it.
func endOf(segments []wet.Segment) uint64 {
	if len(segments) < 2 {
		return math.MaxUint64
	}
	return segments[1].First() + 1
}

// replay replays the first of some segments, and returns the visits that are of the next one, too.
func (f *finder) replay(segments []wet.Segment, visits []visit) (left []visit, err error) {
	end := endOf(segments)
	n, _ := slices.BinarySearchFunc(visits, end,
		func(v visit, end uint64) int { return cmp.Compare(v.position, end) })
	if n == 0 {
		return visits, nil
	}
	err = segments[0].Replay(visits[0].position, visits[n-1].position+1,
		observer(func(e *wet.Executed) error { return f.executed(visits[:n], e) }))
	for n > 0 && visits[n-1].position+1 >= end { // the next one has its rest
		n--
	}
	return slices.Clone(visits[n:]), err
}

// executed gives what is asked for to found.
func (f *finder) executed(visits []visit, e *wet.Executed) error {
	i, ok := slices.BinarySearchFunc(visits, e.Symbol,
		func(v visit, symbol uint64) int { return cmp.Compare(v.position, symbol) })
	if !ok {
		return nil
	}
	for k, at := range visits[i].on {
		if n := visits[i].first[k]; n > 0 &&
			f.question.At[at] == (Instruction{e.Routine, e.Addr}) {
			return f.found(n, e)
		}
	}
	return nil
}
