package loads

import (
	"encoding/binary"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A replayed process has what was read of another, in that order.
type replayed struct {
	everything
	reads []Read
	n     int
}

func (p *replayed) Read(_ uint64, to []byte) bool {
	copy(to, p.reads[p.n].Bytes[:])
	p.n++
	return !p.reads[p.n-1].Failed
}

// TestRunOfSomeRegisters: whatever the registers that are unknown hold, those reads that are given
// were made, and by registers that are known alone; with all registers that is each of them.
func TestRunOfSomeRegisters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		steps, cases := drawProgram(t)
		x := newKnots()
		first := x.program(steps, cases)
		a := newAssembler(x)
		p := &Plan{Looks: []Look{{First: [2]uint32{a.program(first)}}}}
		p.Steps, p.Cases = a.finish()
		all, _ := runOf(p, 0)
		unknown := rapid.Uint32Range(0, 1<<17-1).Draw(t, "unknown")
		var regs [17]uint64
		for i := range regs {
			regs[i] = uint64(i) * 0x1234567
			if unknown>>i&1 != 0 {
				regs[i] = rapid.Uint64().Draw(t, "other")
			}
		}
		var got []Read
		p.Run(0, 0, false, &regs, unknown, &replayed{reads: all}, func(r *Read) {
			got = append(got, *r)
		})
		at := 0
		for i := range got {
			n := slices.Index(all[at:], got[i])
			if n < 0 {
				t.Fatalf("read %d of %v is none of %v", i, got, all)
			}
			at += n + 1
		}
		if unknown == 0 && len(got) != len(all) {
			t.Fatalf("%d reads of %d", len(got), len(all))
		}
	})
}

// TestReadsOfUnknownRegisters: what was read is known though it is not where from; nothing is
// behind a branch by what is unknown.
func TestReadsOfUnknownRegisters(t *testing.T) {
	p := &Plan{Looks: []Look{{First: [2]uint32{1}}}, Steps: []Step{{},
		{Op: Fetch, Dst: 0, A: 1, B: NoCell, Size: 8},
		{Op: Pick, Dst: FirstResult, A: 0, Size: 8},
		{Op: Fetch, Dst: 1, A: FirstResult, B: NoCell, Size: 8},
		{Op: Sum, Dst: FirstResult, A: 1, B: 2, Size: 8},
		{Op: Fetch, Dst: 2, A: FirstResult, B: NoCell, Size: 4},
		{Op: Fetch, Dst: 3, A: FSBase, B: NoCell, Size: 2},
		{Op: Branch, A: 2, B: 1, Size: 8},
		{Op: Fetch, Dst: 4, A: 2, B: NoCell, Size: 1},
		{Op: End}}}
	all, _ := runOf(p, 0)
	for _, c := range []struct {
		unknown uint32
		sizes   []int
	}{{0, []int{8, 8, 4, 2, 1}}, {1 << 1, []int{8, 2}}, {1 << 16, []int{8, 8, 4, 1}},
		{1 << 2, []int{8, 8, 2}}} {
		var regs [17]uint64
		for i := range regs {
			regs[i] = uint64(i) * 0x1234567
		}
		var sizes []int
		p.Run(0, 0, false, &regs, c.unknown, &replayed{reads: all},
			func(r *Read) { sizes = append(sizes, r.Size) })
		if !slices.Equal(sizes, c.sizes) {
			t.Errorf("without %#x reads of %v bytes, want %v", c.unknown, sizes, c.sizes)
		}
	}
}

// TestStores: what is picked of a read is what the program has stored there since, where the last
// store to it has all of that; and is not known, where it is not known what was stored where.
func TestStores(t *testing.T) {
	store := func(cell uint8, imm int32, size uint8) Step {
		return Step{Op: Store, A: 3, Imm: imm, B: cell, Size: size}
	}
	for name, c := range map[string]struct {
		stores  []Step
		want    uint64 // the address that is read then; 0: the first word there was
		unknown uint32
		reads   int
	}{
		"none":      {nil, 0, 0, 2},
		"the word":  {[]Step{store(5, 0, 8)}, 0x5555, 0, 2},
		"the last":  {[]Step{store(5, 0, 8), store(6, 0, 8)}, 0x6666, 0, 2},
		"a part":    {[]Step{store(5, 4, 4)}, 0, 0, 2},
		"elsewhere": {[]Step{store(5, 8, 8)}, 0, 0, 2},
		"too many before": {[]Step{store(5, 0, 8), store(6, 8, 8), store(6, 16, 8),
			store(6, 24, 8), store(6, 32, 8)}, 0, 0, 2},
		"of what is not known": {[]Step{store(5, 0, 8)}, 0, 1 << 5, 1},
	} {
		steps := []Step{{Op: End}, {Op: Fetch, A: 3, B: NoCell, Size: 8}}
		steps = append(steps, c.stores...)
		steps = append(steps, Step{Op: Pick, Dst: FirstResult, Size: 8},
			Step{Op: Fetch, Dst: 1, A: FirstResult, B: NoCell, Size: 8}, Step{Op: End})
		p := &Plan{Steps: steps, Looks: []Look{{First: [2]uint32{1}}}}
		regs := [17]uint64{3: 0x1000, 5: 0x5555, 6: 0x6666}
		var got []Read
		p.Run(0, 0, false, &regs, c.unknown, everything{}, func(r *Read) { got = append(got, *r) })
		want := c.want
		if want == 0 && len(got) > 0 {
			want = binary.LittleEndian.Uint64(got[0].Bytes[:])
		}
		if len(got) != c.reads || got[len(got)-1].Addr != want && c.reads == 2 {
			t.Errorf("%s: the reads are %v", name, got)
		}
	}
}
