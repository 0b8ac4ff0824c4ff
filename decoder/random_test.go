//go:build linux && cgo

package decoder_test

import (
	"testing"

	"pgregory.net/rapid"

	"wpptrace/loader/plan"
	"wpptrace/loader/plan/verify"
)

// walksPerProgram is how often a program drawn at random is walked.
const walksPerProgram = 8

// TestRandomPrograms draws programs, proves their plans and walks them: what the events say is
// what ran, or marked as not known.
func TestRandomPrograms(t *testing.T) {
	for name, walk := range map[string]func(t *rapid.T, p *plan.Plan) *process{
		"plain": func(t *rapid.T,
			p *plan.Plan) *process {
			return walkExactly(t, p, habits{end: 50})
		},
		"callbacks": func(t *rapid.T, p *plan.Plan) *process {
			return walkExactly(t, p, habits{end: 50, callback: 3, kill: once(t, "kill", 20, 200)})
		},
		"throws": func(t *rapid.T, p *plan.Plan) *process {
			return walkExactly(t, p,
				habits{end: 50, callback: once(t, "callback", 2, 8), throw: 3,
					catch: once(t, "catch", 2, 5), jump: once(t, "jump", 2, 5)})
		},
		"handlers": func(t *rapid.T, p *plan.Plan) *process {
			return walkExactly(t, p,
				habits{end: 50, callback: once(t, "callback", 2, 8),
					handler: rapid.IntRange(10, 200).Draw(t, "handler"), altStack: once(t,
						"altStack", 1, 3)})
		},
		"throws beside handlers": func(t *rapid.T, p *plan.Plan) *process {
			return walkExactly(t, p,
				habits{end: 50, callback: once(t, "callback", 2, 8), throw: once(t, "throw", 2, 5),
					jump: once(t, "jump", 2, 5), handler: rapid.IntRange(10, 200).Draw(t,
						"handler")})
		},
		"middle": func(t *rapid.T, p *plan.Plan) *process {
			return walkFromTheMiddle(t, p, habits{end: 50, callback: once(t, "callback", 2, 8)})
		},
		"losses": func(t *rapid.T, p *plan.Plan) *process {
			return walkWithLosses(t, p, habits{end: 50, callback: once(t, "callback", 2, 8)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, steps, programs, decided, counted := t.TempDir(), 0, 0, 0, 0
			rapid.Check(t, func(t *rapid.T) {
				source := drawProgram(t)
				p, err := assemble(dir, source)
				if err != nil {
					t.Fatalf("%v\n%s", err, source)
				}
				t.Log(source)
				for _, f := range verify.Plan(p) {
					t.Errorf("%s", f)
				}
				programs++
				for i := range p.Sites {
					if c := p.Sites[i].Capture; c != nil {
						decided += len(c.Jumps)
					}
				}
				for _, r := range p.Routines {
					for b := range r.Blocks {
						if r.Traced() && r.Counts(b) != nil {
							counted++
						}
					}
				}
				for range walksPerProgram {
					steps += len(walk(t, p).truth)
				}
			})
			t.Logf("%d programs, %d jumps decided by values, the rounds of %d loops by registers, "+
				"%d steps", programs, decided, counted, steps)
		})
	}
}
