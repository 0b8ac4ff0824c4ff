package coverage

import (
	"testing"

	"wpptrace/compress/wpp/covered"
	"wpptrace/internal/traced"
	"wpptrace/loader/cfg"
	"wpptrace/loader/firsthit"
	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// A jump is at 0 and leads to 2 or 8; behind it is a block at 2, and in the first routine one at 8.
// Of the second one, what is at 8 is never reached: in its graph both outcomes lead to 2.
func TestOutcomeOfAJumpWithoutProbe(t *testing.T) {
	jump := cfg.Block{Lo: 0, Succ: []int{2, 1},
		Insns: []cfg.Insn{{Inst: x86.Inst{Len: 2, Rel: 6, Kind: x86.Jcc}}}}
	at := func(addr uint64) cfg.Block {
		ret := x86.Inst{Len: 1, Kind: x86.Ret}
		return cfg.Block{Lo: addr, Insns: []cfg.Insn{{Addr: addr, Inst: ret}}}
	}
	onlyBehind := jump
	onlyBehind.Succ = []int{1, 1}
	for _, c := range []struct {
		name   string
		blocks []cfg.Block
		ran    []uint64 // passages of the blocks behind the jump
		want   [firsthit.Outcomes]covered.State
	}{
		{"both", []cfg.Block{jump, at(2), at(8)}, []uint64{1, 1},
			[firsthit.Outcomes]covered.State{covered.Run, covered.Run}},
		{"one", []cfg.Block{jump, at(2), at(8)}, []uint64{1, 0},
			[firsthit.Outcomes]covered.State{covered.Run, covered.NotRun}},
		{"cannot be", []cfg.Block{onlyBehind, at(2)}, []uint64{1},
			[firsthit.Outcomes]covered.State{covered.Run, covered.Unknown}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &cfg.Routine{Blocks: c.blocks}
			seen := &observed{sites: []site{{place: firsthit.Place{Condition: 7}}},
				passages: []uint64{1, 0}}
			for i, n := range c.ran {
				seen.sites = append(seen.sites, site{block: i + 1,
					place: firsthit.Place{Condition: x86.NoCondition}})
				seen.passages = append(seen.passages, n, 0)
			}
			seen.stands = make([]bool, len(seen.sites))
			seen.fallen = make([]bool, len(seen.sites))
			g := &traced.Graphs{Program: &cfg.Program{Image: &image.Image{},
				Routines: []*cfg.Routine{r}}}
			got, err := collect(g, nil, seen)
			if err != nil {
				t.Fatal(err)
			}
			if j := got.Blocks[0].Jump; j == nil || j.Outcomes != c.want {
				t.Errorf("%v, not %v", j, c.want)
			}
		})
	}
}
