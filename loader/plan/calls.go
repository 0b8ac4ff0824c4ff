package plan

import (
	"slices"

	"wpptrace/loader/cfg"
	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// A Callee says what kind of code a block calls or jumps to.
type Callee uint8

// The kinds of callee.
const (
	NoCallee Callee = iota
	Known           // an observed routine, directly
	External        // code that is not observed, directly
	Harmless        // the same, known to neither call back, nor throw, nor return twice
	Unknown         // through a register or memory: anything
)

// Callee tells what block b of the routine calls, or tail-jumps to; the routine if it is Known.
func (r *Routine) Callee(b int) (Callee, *Routine) { return r.calls[b].kind, r.calls[b].to }

// A calling is what a block calls.
type calling struct {
	kind Callee
	to   *Routine
}

// A destination is where a block calls or jumps to, whatever of it is observed.
type destination struct {
	to        *Routine // of the program; nil if it is none, or not known
	otherwise Callee   // what it is if that is not observed
	twice     bool     // it may return more than once
}

// calling is what a block calls, now that it is known what is observed.
func (d *destination) calling() calling {
	switch {
	case d.to == nil:
		return calling{kind: d.otherwise}
	case d.to.Observed():
		return calling{Known, d.to}
	case callsNothing(d.to.Routine):
		return calling{kind: Harmless}
	}
	return calling{kind: d.otherwise}
}

func (r *Routine) destination(b int) (d destination) {
	block := &r.Blocks[b]
	leaves := block.End == cfg.Tail || block.End == cfg.Jcc && block.Succ[0] < 0
	switch {
	case isCall(block), leaves:
	case block.End == cfg.TailInd:
		return destination{otherwise: Unknown}
	default:
		return destination{}
	}
	callee, name := r.plan.Program.Callee(r.Routine, b)
	if callee != nil {
		d.to = r.plan.Routines[callee.ID]
	}
	d.twice = r.plan.Program.CallReturnsTwice(r.Routine, b)
	switch {
	case r.plan.IsHarmless(name) && block.End != cfg.NoReturn:
		d.otherwise = Harmless
	case block.Insns[len(block.Insns)-1].Kind != x86.CallInd:
		d.otherwise = External
	default:
		d.otherwise = Unknown
	}
	return d
}

// callsNothing reports whether a routine, whose code is known, runs nothing but itself: what is true of the functions named harmless is to be seen here.
func callsNothing(r *cfg.Routine) bool {
	if r.LeftOut != "" {
		return false
	}
	for b := range r.Blocks {
		switch r.Blocks[b].End {
		case cfg.Fall, cfg.Jmp, cfg.Table, cfg.Ret:
		case cfg.Jcc:
			if slices.Contains(r.Blocks[b].Succ, -1) {
				return false
			}
		default:
			return false
		}
		for _, q := range r.Blocks[b].Insns {
			if q.Kind == x86.Syscall {
				return false
			}
		}
	}
	return true
}

// ReturnsTwice reports whether the call that ends block b may return more than once, as setjmp does.
func (r *Routine) ReturnsTwice(b int) bool { return r.destinations[b].twice }

// IsHarmless reports whether an imported function of that name is known to neither call back, nor throw, nor return twice, nor to be observed.
func (p *Plan) IsHarmless(name string) bool {
	return !p.distrust && (harmless[name] || allocating[name] && !p.allocates)
}

// hasAllocator reports whether the C library gets its memory from the program.
func hasAllocator(program *cfg.Program) bool {
	return slices.ContainsFunc(program.Image.Symbols(), func(s image.Symbol) bool {
		return s.Dynamic && slices.Contains([]string{"malloc", "calloc", "realloc", "free"}, s.Name)
	})
}

// harmless are C library functions that neither call back into the program, nor throw, nor jump, nor raise a signal:
// functions of memory and strings whose names nobody else uses.
var harmless = set(
	"memcpy", "memmove", "memset", "memcmp", "memchr", "memrchr", "rawmemchr", "mempcpy", "memmem", "__memcpy_chk", "__memmove_chk", "__memset_chk", "__mempcpy_chk", "bcmp",
	"strlen", "strnlen", "strcmp", "strncmp", "strcasecmp", "strncasecmp", "strchr", "strrchr", "strchrnul", "strstr", "strcpy", "strncpy", "stpcpy", "strcat", "strncat",
	"strspn", "strcspn", "strpbrk", "strtok", "strtok_r", "strsep", "__strcpy_chk", "__strcat_chk", "__stpcpy_chk", "__strncpy_chk", "__strncat_chk",
	"strtol", "strtoul", "strtoll", "strtoull", "strtod", "atoi", "atol",
	"isalnum", "isalpha", "isdigit", "isspace", "isupper", "islower", "toupper", "tolower", "__ctype_b_loc", "__ctype_tolower_loc", "__ctype_toupper_loc", "__ctype_get_mb_cur_max",
	"wcslen", "wmemchr", "wmemcpy", "wmemset", "wcschr", "iswalnum", "iswprint", "towupper", "towlower", "mbsinit",
	"__errno_location", "getenv", "clock_gettime", "gettimeofday", "getpid", "pthread_self",
)

// allocating are such functions, too, but for the allocator, which they use, be it for a conversion of characters that they load.
var allocating = set(
	"malloc", "calloc", "realloc", "free", "strdup", "strndup", "strcoll", "strxfrm",
	"mbrtowc", "mbrlen", "mbstowcs", "mbsrtowcs", "wcrtomb", "btowc",
)

func set(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

// classify finds for each routine who may enter it: Silent and rootable.
func (p *Plan) classify() {
	p.each(func(r *Routine) bool {
		for _, b := range r.leads {
			r.calls[b] = r.destinations[b].calling()
		}
		return false
	})
	p.findReentries()
	fromOutside := make([]bool, len(p.Routines))
	inCircle := p.tailCircles()
	for _, q := range p.Routines {
		for _, b := range q.leads {
			if kind, t := q.Callee(b); kind == Known && !q.Observed() && t != q {
				fromOutside[t.ID] = true
			}
		}
	}
	for i, r := range p.Routines {
		r.rootable = fromOutside[i] || len(r.Others) > 0 || p.Program.AddressTaken(r.Addr) || r.Symbol == "main" || r.Symbol == "_init" || r.Symbol == "_fini"
		r.Silent = !r.rootable && !inCircle[i]
	}
	for again := true; again; { // whoever is tail-jumped to returns to the jumper's caller
		again = false
		for _, q := range p.Routines {
			if !q.rootable || !q.Observed() {
				continue
			}
			for _, b := range q.leads {
				if kind, t := q.Callee(b); kind == Known && !isCall(&q.Blocks[b]) && !t.rootable {
					t.rootable, again = true, true
				}
			}
		}
	}
}

// findReentries finds out which routines may be entered again before they end: those on circles, and those out of which code that is not observed runs.
func (p *Plan) findReentries() {
	for _, r := range p.Routines {
		r.callers = r.callers[:0]
	}
	var queue []*Routine
	next := func(r *Routine) (out []*Routine) {
		for _, b := range r.leads {
			if kind, t := r.Callee(b); kind == Known {
				out = append(out, t)
			}
		}
		return out
	}
	for _, r := range p.Routines {
		r.circle, r.goesOut, r.shifts = 0, false, false
		for _, b := range r.leads {
			kind, _ := r.Callee(b)
			r.goesOut = r.goesOut || kind == External || kind == Unknown
			r.shifts = r.shifts || kind == Known && isCall(&r.Blocks[b]) && r.Blocks[b].Depth < 0
		}
		if r.goesOut {
			queue = append(queue, r)
		}
		for _, t := range next(r) {
			if n := len(t.callers); n == 0 || t.callers[n-1] != r {
				t.callers = append(t.callers, r)
			}
		}
	}
	for i := 0; i < len(queue); i++ {
		for _, r := range queue[i].callers {
			if !r.goesOut {
				r.goesOut = true
				queue = append(queue, r)
			}
		}
	}
	for i, circle := range circles(p.Routines, next) {
		for _, r := range circle {
			r.circle = i + 1
		}
	}
}

// tailCircles finds the routines that tail jumps can lead back to themselves.
func (p *Plan) tailCircles() []bool {
	in := make([]bool, len(p.Routines))
	next := func(r *Routine) (out []*Routine) {
		for _, b := range r.leads {
			if kind, t := r.Callee(b); kind == Known && !isCall(&r.Blocks[b]) {
				out = append(out, t)
			}
		}
		return out
	}
	for _, circle := range circles(p.Routines, next) {
		for _, r := range circle {
			in[r.ID] = true
		}
	}
	return in
}

// circles returns the strongly connected components of the observed routines under next that contain a circle (Tarjan 1972, iterative).
func circles(routines []*Routine, next func(*Routine) []*Routine) [][]*Routine {
	n := len(routines)
	w := &componentWalk{next: next, number: make([]int, n), low: make([]int, n), on: make([]bool, n)}
	for _, root := range routines {
		if w.number[root.ID] == 0 && root.Observed() {
			w.walk(root)
		}
	}
	return w.circles
}

// A componentWalk is the state of circles.
type componentWalk struct {
	next    func(*Routine) []*Routine
	count   int
	number  []int  // by routine: when the walk came to it, from 1
	low     []int  // by routine: the lowest number known to be in its component
	on      []bool // by routine: it is on the stack
	stack   []*Routine
	calls   []visit
	circles [][]*Routine
}

// A visit is a routine whose successors are being walked.
type visit struct {
	r    *Routine
	succ []*Routine
	i    int
}

func (w *componentWalk) walk(root *Routine) {
	for w.enter(root); len(w.calls) > 0; {
		v := &w.calls[len(w.calls)-1]
		if v.i == len(v.succ) {
			done := *v
			w.calls = w.calls[:len(w.calls)-1]
			w.leave(done)
			continue
		}
		t := v.succ[v.i]
		v.i++
		if w.number[t.ID] == 0 {
			w.enter(t)
		} else if w.on[t.ID] {
			w.low[v.r.ID] = min(w.low[v.r.ID], w.number[t.ID])
		}
	}
}

func (w *componentWalk) enter(r *Routine) {
	w.count++
	w.number[r.ID], w.low[r.ID], w.on[r.ID] = w.count, w.count, true
	w.stack = append(w.stack, r)
	w.calls = append(w.calls, visit{r: r, succ: w.next(r)})
}

func (w *componentWalk) leave(v visit) {
	id := v.r.ID
	if w.low[id] == w.number[id] {
		k := len(w.stack) - 1
		for w.stack[k] != v.r {
			k--
		}
		component := slices.Clone(w.stack[k:])
		w.stack = w.stack[:k]
		for _, r := range component {
			w.on[r.ID] = false
		}
		if len(component) > 1 || slices.Contains(v.succ, v.r) {
			w.circles = append(w.circles, component)
		}
	}
	if len(w.calls) > 0 {
		up := w.calls[len(w.calls)-1].r.ID
		w.low[up] = min(w.low[up], w.low[id])
	}
}
