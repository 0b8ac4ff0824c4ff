package recovery

import (
	"fmt"
	"slices"

	"wpptrace/loader/cfg"
	"wpptrace/loader/cfg/draft"
	"wpptrace/loader/cfg/soundness"
	"wpptrace/loader/cfg/sweep"
	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// A Candidate is a routine before it is recovered.
type Candidate struct {
	Ranges [][2]uint64
	Entry  int // the range at whose beginning it is entered
	symbol string
}

// Name is that of cfg.Routine. Cost: some microseconds where it has to be demangled.
func (c Candidate) Name() string { return cfg.NameOf(c.symbol, c.Ranges[c.Entry][0]) }

// Part is Recover for some of the routines of an image, at less cost: those that are selected, and
// those on which it depends what these are. Each of them has the graph that Recover finds, or is
// left out. What else there is is code in no routine, as far as the program knows. Where most of
// the code is selected, all is recovered. Cost: about 10 ns a byte of code on two CPUs, and what
// the selected routines cost Recover a few times over; in memory a few hundred bytes for each
// routine that there is.
func Part(im *image.Image, selects func(c Candidate) bool) (*cfg.Program, error) {
	s, err := Examine(im)
	if err != nil {
		return nil, err
	}
	return s.Part(selects)
}

// A Survey of an image is what Part needs to know of all routines, whichever are selected.
type Survey struct{ survey *sweep.Survey }

// Examine makes the survey of an image, which takes most of the time that Part takes.
func Examine(im *image.Image) (*Survey, error) {
	s, err := sweep.Examine(im)
	if err != nil {
		return nil, fmt.Errorf("recover routines of %s: %w", im.Name, err)
	}
	if len(s.File.Code.Pieces) == 0 {
		return nil, fmt.Errorf("recover routines of %s: %w", im.Name, NoUnwind(im))
	}
	return &Survey{s}, nil
}

// Each calls back with each routine. Cost: some 100 ns for each.
func (s *Survey) Each(visit func(c Candidate)) {
	for g := range s.survey.Group.Len() {
		visit(candidate(s.survey, g))
	}
}

// EachCall calls back with each direct call of a routine's first instruction, as far as calls are
// known before anything is recovered. Cost: some 100 ns for each.
func (s *Survey) EachCall(visit func(caller, callee Candidate)) {
	of := make([]int32, len(s.survey.File.Code.Pieces))
	for g := range s.survey.Group.Len() {
		for _, k := range s.survey.Group.Of(g) {
			of[k] = int32(g)
		}
	}
	for _, call := range s.survey.Calls {
		visit(candidate(s.survey, int(of[call.From])), candidate(s.survey, int(of[call.To])))
	}
}

// candidate is the routine of a group.
func candidate(s *sweep.Survey, group int) Candidate {
	entry := s.Entry[group]
	c := Candidate{symbol: s.File.Code.Pieces[entry].Symbol}
	for i, k := range s.Group.Of(group) {
		p := &s.File.Code.Pieces[k]
		if c.Ranges = append(c.Ranges, [2]uint64{p.Lo, p.Hi}); k == entry {
			c.Entry = i
		}
	}
	return c
}

// Part is the function of that name. It is called once.
func (s *Survey) Part(selects func(c Candidate) bool) (*cfg.Program, error) {
	im := s.survey.File.Image
	p := newPart(s.survey)
	if p.transacts {
		// a transaction goes on in what is called, and that is any routine
		return Recover(im)
	}
	if p.choose(selects) {
		return Recover(im)
	}
	for {
		if program := p.recover(); program != nil {
			return program, nil
		}
	}
}

// A part is a recovery of some routines.
type part struct {
	survey    *sweep.Survey
	groupOf   []int32 // by piece
	selected  []bool  // by group
	wanted    []bool  // by group: it is recovered
	mayEnd    []bool  // by group: it may never return
	unseen    links   // Survey.Unseen, by the group that they are in
	transacts bool
}

func newPart(s *sweep.Survey) *part {
	n := s.Group.Len()
	p := &part{survey: s, groupOf: make([]int32, len(s.File.Code.Pieces)),
		selected: make([]bool, n), wanted: make([]bool, n)}
	for g := range n {
		for _, k := range s.Group.Of(g) {
			p.groupOf[k] = int32(g)
			p.transacts = p.transacts || s.Marks(int(k))&sweep.Transacts != 0
		}
	}
	return p
}

// choose selects routines, and wants those besides whose instructions have to be known whatever is
// selected. It reports whether most of the code is selected, so that all may be recovered as well.
func (p *part) choose(selects func(c Candidate) bool) (most bool) {
	size, all := uint64(0), uint64(0)
	const known = sweep.TakesLabel | sweep.UsesReturn | sweep.Middle
	code := p.survey.File.Code
	for g := range p.selected {
		from := all
		for _, piece := range p.survey.Group.Of(g) {
			k := int(piece)
			all += code.Pieces[k].Hi - code.Pieces[k].Lo
			p.wanted[g] = p.wanted[g] || p.survey.Marks(k)&known != 0 ||
				cfg.IsReturnsTwiceSymbol(code.Pieces[k].Symbol) || p.survey.End(code.Pieces[k].Lo)
		}
		if p.selected[g] = selects(candidate(p.survey, g)); p.selected[g] {
			size += all - from
		}
		p.wanted[g] = p.wanted[g] || p.selected[g]
	}
	p.findCandidates()
	u := p.survey.Unseen
	p.unseen = newLinks(len(p.wanted), len(u),
		func(i int) int { return int(p.groupOf[code.FindPiece(u[i].Addr)]) })
	for g := range p.wanted {
		if p.wanted[g] {
			p.eachNeeded(g, func(with int) { p.want(with) })
		}
	}
	return all < largest && size > all/2
}

// largest is how many bytes of code are recovered as a whole where most of it is selected.
const largest = 64 << 20

// findCandidates finds the routines that may never return: all others do, whatever these do.
func (p *part) findCandidates() {
	s := p.survey
	p.mayEnd = make([]bool, s.Group.Len())
	callers := newLinks(len(p.groupOf), len(s.Calls), func(i int) int { return int(s.Calls[i].To) })
	// of routines; of pieces that call one that was found last
	returns, again := make([]bool, s.Group.Len()), make([]bool, len(p.groupOf))
	into := newLinks(s.Group.Len(), len(s.Jumps), func(i int) int {
		if to := s.Jumps[i].To; to >= 0 {
			return int(p.groupOf[to])
		}
		return nowhere
	})
	for {
		p.findReturning(returns, into)
		clear(again)
		any := false
		mayChange := func(k int) bool { // from returning to not returning
			return !p.mayEnd[p.groupOf[k]] && (s.Marks(k)&sweep.Returns != 0 ||
				slices.ContainsFunc(s.JumpsFrom(k), func(j sweep.Jump) bool { return j.Reached }))
		}
		for g := range returns {
			if returns[g] || p.mayEnd[g] {
				continue
			}
			p.mayEnd[g], any = true, true
			for _, k := range s.Group.Of(g) {
				s.NoteEnd(int(k))
				for i := range callers.of(int(k)) {
					from := s.Calls[i].From
					again[from] = again[from] || mayChange(int(from))
				}
			}
		}
		if !any {
			return
		}
		s.LookAgain(slices.Collect(func(yield func(int) bool) {
			for k := range again {
				if again[k] && !yield(k) {
					return
				}
			}
		}))
	}
}

// findReturning finds the routines that return, with what is known by now never to. into are the
// jumps, by the routine that they lead to.
func (p *part) findReturning(returns []bool, into links) {
	clear(returns)
	var work []int32
	note := func(g int32) {
		if !returns[g] {
			returns[g] = true
			work = append(work, g)
		}
	}
	for k := range p.groupOf {
		if marks := p.survey.Marks(k); marks&sweep.Returns != 0 ||
			marks&(sweep.Indirect|sweep.Table|sweep.Unreached) == sweep.Indirect {
			note(p.groupOf[k])
		}
	}
	isTail := func(j *sweep.Jump) bool {
		return j.Reached && (j.To < 0 || p.groupOf[j.To] != p.groupOf[j.From])
	}
	for i := range p.survey.Jumps {
		if j := &p.survey.Jumps[i]; isTail(j) &&
			(j.Kind != x86.Jmp || j.To < 0 && !p.survey.End(j.Target)) {
			note(p.groupOf[j.From])
		}
	}
	for len(work) > 0 {
		g := work[len(work)-1]
		work = work[:len(work)-1]
		for i := range into.of(int(g)) {
			if j := &p.survey.Jumps[i]; isTail(j) && j.Kind == x86.Jmp {
				note(p.groupOf[j.From])
			}
		}
	}
}

// want wants a routine, and reports whether it was not wanted.
func (p *part) want(g int) (isNew bool) {
	if p.wanted[g] {
		return false
	}
	p.wanted[g] = true
	for work := []int{g}; len(work) > 0; {
		last := len(work) - 1
		g, work = work[last], work[:last]
		p.eachNeeded(g, func(with int) {
			if !p.wanted[with] {
				p.wanted[with] = true
				work = append(work, with)
			}
		})
	}
	return true
}

// eachNeeded calls back with the routines that have to be known where one is: those that it calls
// or jumps to, if they may never return, and those that may lead to its middle in code that control
// flow is not known to reach.
func (p *part) eachNeeded(g int, visit func(with int)) {
	for i := range p.unseen.of(g) {
		visit(int(p.groupOf[p.survey.Unseen[i].From]))
	}
	for _, piece := range p.survey.Group.Of(g) {
		k := int(piece)
		for _, c := range p.survey.CallsFrom(k) {
			if to := int(p.groupOf[c.To]); p.mayEnd[to] {
				visit(to)
			}
		}
		for _, j := range p.survey.JumpsFrom(k) {
			if j.To >= 0 && p.mayEnd[p.groupOf[j.To]] {
				visit(int(p.groupOf[j.To]))
			}
		}
	}
}

// recover recovers what is wanted; nil: more has to be known.
func (p *part) recover() *cfg.Program {
	s := p.survey
	s.Take(func(piece int) bool { return p.wanted[p.groupOf[piece]] })
	drafts := draft.NewPart(s)
	for {
		drafts.Build(int64(baseSteps + stepsPerInsn*len(s.File.Code.Insns)))
		if p.needsMore() {
			return nil
		}
		program := soundness.Check(drafts)
		if drafts.Distrust() {
			continue
		}
		for _, d := range drafts.Routines {
			if len(d.Pieces) > 0 && p.selected[p.groupOf[d.Pieces[0]]] {
				drafts.WantCallees(d)
			}
		}
		if p.needsMore() {
			return nil
		}
		program.Outside = drafts.PartsOutside()
		return program
	}
}

// needsMore wants what turned out to be needed, and reports whether there is such.
func (p *part) needsMore() (more bool) {
	for _, k := range p.survey.Wanted() {
		more = p.want(int(p.groupOf[k])) || more
	}
	return p.survey.HasMissed() || more
}
