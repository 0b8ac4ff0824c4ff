package values

import (
	"cmp"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
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
// is good until found returns, whose error ends it. Only the segments are read that have one of the
// executions, as many at once as there are processors: one takes some 30 ms. What is kept meanwhile
// is some 300 bytes an execution of a few segments.
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
	f := &finder{question: q, on: symbolsWith(s, q.At), found: found,
		counts: make([]uint64, len(q.At))}
	for i := range s.Threads {
		if slices.Contains(threads, &s.Threads[i]) {
			if err := f.thread(s, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// A step is where an instruction that is asked for runs in a path.
type step struct {
	at          int // index in Question.At
	block, insn int // index of the block in the path, and in the block
}

// symbolsWith are, by symbol, the instructions that run when it does: a path is acyclic, so that
// each does once.
func symbolsWith(s *wpp.Snapshot, at []Instruction) [][]step {
	on := make([][]step, len(s.Symbols))
	for sym := range s.Symbols {
		p := &s.Symbols[sym]
		if p.IsMark || !slices.ContainsFunc(at,
			func(x Instruction) bool { return x.Routine == p.Routine }) {
			continue
		}
		for i, n := range p.Blocks {
			on[sym] = append(on[sym], stepsIn(s, p, i, n, at)...)
		}
	}
	return on
}

// stepsIn are those in a block of a path.
func stepsIn(s *wpp.Snapshot, p *wpp.Symbol, block, number int, at []Instruction) (list []step) {
	b := &s.Routines[p.Routine].Blocks[number]
	from, to, addr := 0, len(b.Lengths), b.Addr
	if block == 0 {
		from = p.Skip
	}
	if block == len(p.Blocks)-1 {
		to -= p.Cut
	}
	for i, n := range b.Lengths {
		if i >= from && i < to {
			if k := slices.Index(at, Instruction{p.Routine, addr}); k >= 0 {
				list = append(list, step{k, block, i})
			}
		}
		addr += uint64(n)
	}
	return list
}

// A finder goes through the threads.
type finder struct {
	question *Question
	on       [][]step
	counts   []uint64 // executions of each instruction, in the threads before
	found    func(uint64, *wet.Executed) error
}

// thread finds what is asked for of a thread.
func (f *finder) thread(s *wpp.Snapshot, thread int) error {
	segments, err := wet.Segments(s, thread)
	if err != nil {
		return err
	}
	var jobs []*job
	for i := range segments {
		j := &job{finder: f, segment: &segments[i], before: slices.Clone(f.counts)}
		if i+1 < len(segments) {
			j.next = &segments[i+1]
		}
		for _, x := range segments[i].Ran() {
			for _, on := range f.on[x.Symbol] {
				f.counts[on.at] += x.Times
			}
		}
		if j.mayHave(f.counts) {
			jobs = append(jobs, j)
		}
	}
	return f.run(jobs)
}

// run does the jobs, some of them at once, and gives what they find to found, in their order.
func (f *finder) run(jobs []*job) error {
	if len(jobs) == 1 {
		return jobs[0].run(f.found)
	}
	done := make([]chan error, len(jobs))
	begin := func(i int) {
		done[i] = make(chan error, 1)
		go func() { done[i] <- jobs[i].run(jobs[i].keep) }()
	}
	begun := 0
	var failed error
	for i, j := range jobs {
		for ; begun < min(i+runtime.GOMAXPROCS(0), len(jobs)) && failed == nil; begun++ {
			begin(begun)
		}
		if i == begun {
			break
		}
		if err := <-done[i]; failed == nil {
			failed = err
		}
		for k := range j.kept {
			if failed == nil {
				failed = f.found(j.kept[k].number, &j.kept[k].Executed)
			}
		}
		j.kept = nil
	}
	return failed
}

// A job is to find what a segment has.
type job struct {
	finder  *finder
	segment *wet.Segment
	next    *wet.Segment // nil: it is the last
	before  []uint64     // executions of each instruction, before its first symbol
	kept    []kept
}

// A kept execution is one that waits until those before it are found.
type kept struct {
	wet.Executed
	number uint64
}

// mayHave reports whether the segment may have what is asked for: behind its last symbol there are
// so many executions, and one more may be of it and in the path that it ends in.
func (j *job) mayHave(behind []uint64) bool {
	n := j.finder.question.Instance
	for i, before := range j.before {
		if n == 0 || before < n && n <= behind[i]+1 {
			return true
		}
	}
	return false
}

// A visit is an execution that is asked for.
type visit struct {
	at     wet.Place
	number uint64
}

// run gives what the segment has to found, in its order.
func (j *job) run(found func(uint64, *wet.Executed) error) (err error) {
	defer wpp.Recover(&err)
	visits := j.visits()
	if len(visits) == 0 {
		return nil
	}
	at := 0
	return j.segment.Replay(visits[0].at.Symbol, visits[len(visits)-1].at.Symbol+1,
		observer(func(e *wet.Executed) error {
			if at == len(visits) {
				return nil
			}
			v := &visits[at]
			if e.Symbol != v.at.Symbol || e.Step != v.at.Step || e.Insn != v.at.Insn {
				return nil
			}
			at++
			return found(v.number, e)
		}))
}

// visits are the executions in the segment that are asked for.
func (j *job) visits() (list []visit) {
	f, numbers := j.finder, slices.Clone(j.before)
	from, begins := j.segment.Start()
	to, ends := wet.Place{}, j.next != nil
	if ends {
		to, _ = j.next.Start()
	}
	position := j.segment.First()
	for sym := range j.segment.Symbols() {
		if ends && position > to.Symbol {
			break
		}
		for _, on := range f.on[sym] {
			numbers[on.at]++
			at := wet.Place{Symbol: position, Step: on.block, Insn: on.insn}
			if n := f.question.Instance; n > 0 && n != numbers[on.at] ||
				begins && at.Compare(from) < 0 || ends && at.Compare(to) >= 0 {
				continue
			}
			list = append(list, visit{at, numbers[on.at]})
		}
		position++
	}
	return list
}

// keep keeps what is found.
func (j *job) keep(n uint64, e *wet.Executed) error {
	c := kept{*e, n}
	c.Written = slices.Clone(e.Written)
	c.Accesses = make([]machine.Access, len(e.Accesses))
	for i := range e.Accesses {
		c.Accesses[i] = e.Accesses[i].Clone()
	}
	j.kept = append(j.kept, c)
	return nil
}
