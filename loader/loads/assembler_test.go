package loads

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wpptrace/loader/x86"
)

// everything is a process that can read any address: a number that follows from it.
type everything struct{}

func (everything) Read(addr uint64, to []byte) bool {
	for i := range to {
		to[i] = byte((addr + uint64(i)) * 0x9e3779b97f4a7c15 >> 56)
	}
	return true
}
func (everything) Continuation(ra uint64) (step uint32, ok bool) { return 0, ra&1 != 0 }
func (everything) Bias(int) uint64                               { return 0x1000 }

func runOf(p *Plan, look int) (reads []Read, left bool) {
	var regs [17]uint64
	for i := range regs {
		regs[i] = uint64(i) * 0x1234567
	}
	left = p.Run(look, 0, false, &regs, 0, everything{},
		func(r *Read) { reads = append(reads, *r) })
	return reads, left
}

// drawProgram draws a program whose steps jump forward, as those of an emitter do.
func drawProgram(t *rapid.T) (steps []Step, cases []uint32) {
	steps = []Step{{Op: Sum, Dst: FirstResult, A: 2, B: NoCell, Size: 8},
		{Op: Fetch, A: 3, B: NoCell, Size: 8}}
	n := rapid.IntRange(1, 12).Draw(t, "steps")
	cell := rapid.SampledFrom([]uint8{0, 1, FirstResult, NoCell})
	for i := range n {
		s := Step{Op: rapid.SampledFrom([]Op{Sum, Fetch, Fetch, Pick, Branch, Branch, Switch, Leave,
			Return, Xor}).Draw(t, "op"), A: cell.Draw(t, "a"), B: cell.Draw(t, "b"),
			Size: rapid.SampledFrom([]uint8{1, 8}).Draw(t, "size"),
			Imm:  rapid.Int32Range(0, 3).Draw(t, "imm")}
		further := rapid.IntRange(0, n-i-1)
		switch s.Op {
		case Branch:
			s.Condition = rapid.SampledFrom([]uint8{x86.Equal, x86.Below, x86.NotEqual}).
				Draw(t, "condition")
			s.Jump = uint32(further.Draw(t, "jump"))
		case Switch:
			s.Jump = uint32(len(cases))
			cases = append(cases, 2)
			for range 2 {
				cases = append(cases, uint32(2+i+1+further.Draw(t, "case")))
			}
		case Fetch, Pick:
			s.Dst, s.A = 0, s.A*uint8(min(1, Pick-s.Op))
			if s.Op == Pick {
				s.Dst = FirstResult
			}
		default:
			s.Dst = FirstResult
		}
		steps = append(steps, s)
	}
	return append(steps, Step{Op: End}), cases
}

// TestProgramsShareTheirEnds has programs do the same where they share steps as alone.
func TestProgramsShareTheirEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		alone := &Plan{Steps: []Step{{Op: End}, {Op: End}}}
		parts := []*knots{newKnots(), newKnots()}
		all := newKnots()
		roots := make([][]int32, len(parts))
		n := rapid.IntRange(1, 4).Draw(t, "programs")
		for k := range parts {
			for range n {
				steps, cases := drawProgram(t)
				roots[k] = append(roots[k], parts[k].program(steps, cases))
				first := uint32(len(alone.Steps))
				for _, s := range steps {
					if s.Op == Switch {
						s.Jump += uint32(len(alone.Cases))
					} else if s.Op != Branch {
						s.Jump = 0
					}
					alone.Steps = append(alone.Steps, s)
				}
				for i, c := range cases {
					if i%3 != 0 {
						c += first
					}
					alone.Cases = append(alone.Cases, c)
				}
				alone.Looks = append(alone.Looks, Look{First: [2]uint32{first}})
			}
		}
		for k := range parts {
			moved := all.merge(parts[k])
			for i := range roots[k] {
				roots[k][i] = moved[roots[k][i]]
			}
		}
		a, shared := newAssembler(all), &Plan{}
		for _, root := range slices.Concat(roots...) {
			shared.Looks = append(shared.Looks, Look{First: [2]uint32{a.program(root)}})
		}
		if shared.Steps, shared.Cases = a.finish(); len(shared.Steps) > len(alone.Steps) {
			t.Errorf("%d steps, %d where each program has its own", len(shared.Steps),
				len(alone.Steps))
		}
		for look := range alone.Looks {
			want, wantLeft := runOf(alone, look)
			got, left := runOf(shared, look)
			if diff := cmp.Diff(want, got); diff != "" || left != wantLeft {
				t.Fatalf("program %d leaves: %v, want %v, and reads (-want +got):\n%s", look, left,
					wantLeft, diff)
			}
		}
	})
}
