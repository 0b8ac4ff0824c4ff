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
	Name   string // as cfg.Routine has it
	Ranges [][2]uint64
	Entry  int // the range at whose beginning it is entered
}

// Part is Recover for some of the routines of an image, at less cost: those that are selected, and
// those on which it depends what these are. Each of them has the graph that Recover finds, or is
// left out. What else there is is code in no routine, as far as the program knows. Where most of
// the code is selected, all is recovered. Cost: about 20 ns a byte of code on two CPUs, and what
// the selected routines cost Recover a few times over; in memory a few hundred bytes for each
// routine that there is.
func Part(im *image.Image, selects func(c Candidate) bool) (*cfg.Program, error) {
	s, err := sweep.Examine(im)
	if err != nil {
		return nil, fmt.Errorf("recover routines of %s: %w", im.Name, err)
	}
	if len(s.File.Code.Pieces) == 0 {
		return nil, fmt.Errorf("recover routines of %s: %w", im.Name, NoUnwind(im))
	}
	p := newPart(s)
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
	transacts bool
}

func newPart(s *sweep.Survey) *part {
	n := len(s.Group)
	p := &part{survey: s, groupOf: make([]int32, len(s.File.Code.Pieces)),
		selected: make([]bool, n), wanted: make([]bool, n)}
	for g, pieces := range s.Group {
		for _, k := range pieces {
			p.groupOf[k] = int32(g)
			p.transacts = p.transacts || s.Marks(k)&sweep.Transacts != 0
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
	for g, pieces := range p.survey.Group {
		entry := &code.Pieces[p.survey.Entry[g]]
		c := Candidate{Name: cfg.NameOf(p.survey.File.Names[entry.Lo], entry.Lo)}
		from := all
		for i, k := range pieces {
			c.Ranges = append(c.Ranges, [2]uint64{code.Pieces[k].Lo, code.Pieces[k].Hi})
			all += code.Pieces[k].Hi - code.Pieces[k].Lo
			if k == p.survey.Entry[g] {
				c.Entry = i
			}
			p.wanted[g] = p.wanted[g] || p.survey.Marks(k)&known != 0 ||
				cfg.IsReturnsTwiceSymbol(code.Pieces[k].Symbol) || p.survey.End(code.Pieces[k].Lo)
		}
		if p.selected[g] = selects(c); p.selected[g] {
			size += all - from
		}
		p.wanted[g] = p.wanted[g] || p.selected[g]
	}
	p.findCandidates()
	for g := range p.wanted {
		if p.wanted[g] {
			p.wantCallees(g)
		}
	}
	return all < largest && size > all/2
}

// largest is how many bytes of code are recovered as a whole where most of it is selected.
const largest = 64 << 20

// findCandidates finds the routines that may never return: all others do, whatever these do.
func (p *part) findCandidates() {
	s := p.survey
	p.mayEnd = make([]bool, len(s.Group))
	callers := map[int32][]int32{} // pieces
	for again := true; again; {
		again = false
		ended := map[int32]bool{} // pieces
		for g, returns := range p.findReturning() {
			if returns || p.mayEnd[g] {
				continue
			}
			p.mayEnd[g], again = true, true
			for _, k := range s.Group[g] {
				s.NoteEnd(s.File.Code.Pieces[k].Lo)
				ended[int32(k)] = true
			}
		}
		if len(callers) == 0 {
			for _, c := range s.Calls {
				callers[c.To] = append(callers[c.To], c.From)
			}
		}
		var pieces []int
		for k := range ended {
			for _, from := range callers[k] {
				pieces = append(pieces, int(from))
			}
		}
		slices.Sort(pieces)
		s.LookAgain(slices.Compact(pieces))
	}
}

// findReturning finds the routines that return, with what is known by now never to.
func (p *part) findReturning() (returns []bool) {
	returns = make([]bool, len(p.survey.Group))
	into := map[int32][]int32{} // tail jumps, by where they lead
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
	for i := range p.survey.Jumps {
		j := &p.survey.Jumps[i]
		from := p.groupOf[j.From]
		switch {
		case !j.Reached || j.To >= 0 && p.groupOf[j.To] == from:
		case j.Kind != x86.Jmp, j.To < 0 && !p.survey.End(j.Target):
			note(from)
		case j.To >= 0:
			into[p.groupOf[j.To]] = append(into[p.groupOf[j.To]], from)
		}
	}
	for len(work) > 0 {
		g := work[len(work)-1]
		work = work[:len(work)-1]
		for _, from := range into[g] {
			note(from)
		}
	}
	return returns
}

// want wants a routine, and reports whether it was not wanted.
func (p *part) want(g int) (isNew bool) {
	if p.wanted[g] {
		return false
	}
	p.wanted[g] = true
	p.wantCallees(g)
	return true
}

// wantCallees wants the routines that one calls or jumps to, if they may never return.
func (p *part) wantCallees(g int) {
	for _, k := range p.survey.Group[g] {
		for _, c := range p.survey.CallsFrom(k) {
			if to := int(p.groupOf[c.To]); p.mayEnd[to] {
				p.want(to)
			}
		}
		for _, j := range p.survey.JumpsFrom(k) {
			if j.To >= 0 && p.mayEnd[p.groupOf[j.To]] {
				p.want(int(p.groupOf[j.To]))
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
