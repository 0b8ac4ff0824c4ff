package values

import (
	"runtime"
	"slices"

	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wpp"
)

// A Question asks for executions.
type Question struct {
	Where    *Where
	Threads  []int  // ids; none: all
	Instance uint64 // the one with this number, from 1; 0: all
}

// Each gives each instruction of the executions that are asked for to found, with the number of the
// execution: threads in the order of the snapshot, each in the order of execution. What is found is
// good until found returns, whose error ends it. It fails where there is no such execution. Of a
// source line the streams of paths are read, some 20 ns a path. Only the segments are read that
// have one of the executions, as many at once as there are processors: one takes up to some
// 60 ms. What is kept meanwhile is some 300 bytes an execution of a few segments.
func Each(s *wpp.Snapshot, q *Question,
	found func(instance uint64, e *wet.Executed) error) (err error) {
	defer wpp.Recover(&err)
	threads, err := q.threads(s)
	if err != nil {
		return err
	}
	if q.Where.Kind == End {
		e, _, _, err := lastOf(s, threads)
		if err == nil {
			err = q.check(s, 1)
		}
		if err != nil {
			return err
		}
		return found(1, e)
	}
	f := &finder{question: q, counter: newCounter(s, q.Where), found: found}
	for _, thread := range threads {
		if err := f.thread(s, thread); err != nil {
			return err
		}
	}
	return q.check(s, f.counter.count)
}

// A finder goes through the threads.
type finder struct {
	question *Question
	counter  *counter // of all up to where the threads are read
	found    func(uint64, *wet.Executed) error
}

// thread finds what is asked for of a thread.
func (f *finder) thread(s *wpp.Snapshot, thread int) error {
	segments, err := wet.Segments(s, thread)
	if err != nil {
		return err
	}
	if len(segments) == 0 { // it has no values, but executions
		f.counter.thread(thread, func(uint64, []numbered) {})
	}
	f.counter.begin()
	var jobs []*job
	for i := range segments {
		j := &job{finder: f, segment: &segments[i], counter: f.counter.copy()}
		if i+1 < len(segments) {
			j.next = &segments[i+1]
		}
		if f.count(j) {
			jobs = append(jobs, j)
		}
	}
	return f.run(jobs)
}

// count counts the executions in a segment, and reports whether it may have what is asked for.
func (f *finder) count(j *job) (mayHave bool) {
	n := f.question.Instance
	if f.counter.where.Kind != Line {
		for _, x := range j.segment.Ran() {
			f.counter.count += x.Times * uint64(len(f.counter.parts[x.Symbol]))
		}
		// those of the path that it ends in are among those of the next one
		return n == 0 || j.counter.count < n && n <= f.counter.count+f.counter.most
	}
	position := j.segment.First()
	for sym := range j.segment.Symbols() {
		c := f.counter
		if j.next != nil && position == j.next.First() {
			c = c.copy() // the next one counts it
		}
		for _, x := range c.visit(sym) {
			mayHave = mayHave || n == 0 || n == x.number
		}
		if c != f.counter {
			break
		}
		position++
	}
	return mayHave
}

// run does the jobs, some of them at once, and gives what they find to found, in their order.
func (f *finder) run(jobs []*job) error {
	if len(jobs) == 1 {
		jobs[0].segment = jobs[0].segment.Alone()
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
	counter *counter     // as it is before the first symbol
	kept    []kept
}

// A kept execution is one that waits until those before it are found.
type kept struct {
	wet.Executed
	number uint64
}

// A visit is an execution that is asked for.
type visit struct {
	at     wet.Place
	number uint64
}

// run gives what the segment has to found, in its order.
func (j *job) run(found func(uint64, *wet.Executed) error) (err error) {
	defer wpp.Recover(&err)
	segment := j.segment.Ahead()
	visits := j.visits()
	if len(visits) == 0 {
		return nil
	}
	at := 0
	return segment.Replay(visits[0].at.Symbol, visits[len(visits)-1].at.Symbol+1,
		observer(func(e *wet.Executed) error {
			for at < len(visits) && visits[at].at.Compare(e.Place) < 0 {
				at++ // the file says that it ran, and it did not
			}
			if at == len(visits) || visits[at].at.Compare(e.Place) > 0 {
				return nil
			}
			v := &visits[at]
			at++
			return found(v.number, e)
		}))
}

// visits are the executions in the segment that are asked for.
func (j *job) visits() (list []visit) {
	n := j.finder.question.Instance
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
		for _, x := range j.counter.visit(sym) {
			if n > 0 && x.number > n && j.counter.where.Kind != Line {
				return list // of a line, one that began before may go on
			}
			at := x.place(position)
			if n > 0 && n != x.number ||
				begins && at.Compare(from) < 0 || ends && at.Compare(to) >= 0 {
				continue
			}
			list = append(list, visit{at, x.number})
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
