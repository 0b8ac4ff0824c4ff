package overhead

import (
	"wpptrace/loader/attach"
	"wpptrace/loader/plan"
	"wpptrace/query"
)

// A Forecast is what the plan makes of a process, before anything is attached.
type Forecast struct {
	Emulated, Stepped float64 // expected hits an instruction
	Cost              attach.Cost
	// Some says that it is one of some routines alone: nobody knows how much of the process's time
	// is theirs.
	Some bool
}

// What an instruction takes, ns: in code that computes, and at the least.
const (
	UsualTime = query.UsualInstructionTime
	LeastTime = query.InstructionTime
)

// NewForecast weighs each probe with how often the plan expects it to be hit, and each hit with the
// instructions from there to the next. some: it is of some routines alone.
func NewForecast(p *plan.Plan, cost attach.Cost, some bool) Forecast {
	f := Forecast{Cost: cost, Some: some}
	instructions := 0.0
	for i := range p.Sites {
		s := &p.Sites[i]
		instructions += s.Expected * toNextProbe(p.Routines[s.Routine], s.Block)
		if s.Stepped {
			f.Stepped += s.Expected
		} else {
			f.Emulated += s.Expected
		}
	}
	if instructions > 0 {
		f.Emulated /= instructions
		f.Stepped /= instructions
	}
	return f
}

// toNextProbe is how many instructions run from the end of a block to the end of the next one with
// a probe, on average over its ways. Instructions of callees without a hit are left out, so that
// the forecast is on the high side.
func toNextProbe(r *plan.Routine, block int) float64 {
	const farthest = 64 // blocks
	ways, sum := 0, 0
	for _, b := range r.Blocks[block].Succ {
		ways++
		for range farthest {
			if b < 0 {
				break
			}
			sum += len(r.Blocks[b].Insns)
			if r.Site(b) != nil || len(r.Blocks[b].Succ) == 0 {
				break
			}
			b = r.Blocks[b].Succ[0]
		}
	}
	if ways == 0 || sum == 0 {
		return float64(len(r.Blocks[block].Insns))
	}
	return float64(sum) / float64(ways)
}

// SlowDown is how many times longer the process's own code takes, if an instruction takes so many
// ns untraced.
func (f Forecast) SlowDown(instruction float64) float64 {
	return 1 + (f.Emulated*float64(f.Cost.Emulated)+f.Stepped*float64(f.Cost.Stepped))/instruction
}
