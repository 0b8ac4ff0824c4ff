package wet

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"wpptrace/compress/ops"
	"wpptrace/compress/sequitur"
	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wpp"
)

// TestReplayIsBounded: a small file whose loop stores to ever more pages is refused, before it
// takes all memory.
func TestReplayIsBounded(t *testing.T) {
	insns := []machine.Insn{
		{Op: machine.Mov, Len: 4, Size: 8, Dst: at(machine.RBX, 0, 8), Src: reg(machine.RAX, 8)},
		{Op: machine.Add, Len: 4, Size: 8, Dst: reg(machine.RBX, 8), Src: imm, Imm: 4096},
		{Op: machine.Jump, Len: 2, Size: 8, Src: imm, Imm: -10},
	}
	code := NewCode(func(int) *Routine {
		return &Routine{Blocks: []Block{
			{Addr: 0x1000, Insns: []machine.Insn{{Op: machine.NoOp, Len: 1}},
				Sites: []Site{{Insn: 0}}},
			{Addr: 0x1001, Insns: insns}}}
	})
	code.Routine(0)
	g := sequitur.New()
	g.Append(0)
	for range 1 << 20 {
		g.Append(1)
	}
	log := Log{symbols: 1 + 1<<20}
	log.Begin(Place{}, &Entry{})
	log.Recover(Place{}, &Recovery{})
	log.Begin(Place{}, &Entry{Registers: 0xffff})
	s := &wpp.Snapshot{Images: make([]wpp.Image, 1),
		Symbols: []wpp.Symbol{{Blocks: []int{0}}, {Start: ops.StartLoop, Blocks: []int{1}}},
		Routines: []wpp.Routine{{Blocks: []wpp.Block{{Addr: 0x1000, Lengths: []byte{1}},
			{Addr: 0x1001, Lengths: []byte{4, 4, 2}}}}},
		Threads:  []wpp.Thread{{TID: 1, Grammar: wpp.FromSequitur(g)}},
		Sections: append([]*wpp.Section{code.Section()}, log.Sections(0)...)}
	if _, err := replay(s); !errors.Is(err, errTooLarge) {
		t.Errorf("%v, want %v", err, errTooLarge)
	}
}

// TestCodeIsDecodedOnce: whoever asks gets the same instructions, but not those of other tables.
func TestCodeIsDecodedOnce(t *testing.T) {
	s := recorded(t, []int{0, 1})
	first, err := CodeOf(s)
	if err != nil {
		t.Fatal(err)
	}
	part := *s
	if again, err := CodeOf(&part); again != first || err != nil {
		t.Errorf("%p, %v, want %p", again, err, first)
	}
	other := *s
	other.Routines = slices.Clone(s.Routines)
	other.Routines[0].Blocks = nil
	if c, err := CodeOf(&other); err == nil {
		t.Errorf("%v is of a routine that has other blocks", c)
	}
}

// TestSegmentsAscend: segments that stand in another order than they were recorded in are refused.
func TestSegmentsAscend(t *testing.T) {
	s := recorded(t, []int{0, 1, 2, 2})
	from := func(at Place) []*wpp.Section {
		log := Log{start: &start{at: at, state: machine.New().AppendState(nil)}}
		return log.Sections(0)
	}
	early := Place{Symbol: 1, Step: 1, Block: 2, Insn: 3}
	late := Place{Symbol: 2, Block: 2, Insn: 3}
	for name, c := range map[string]struct {
		a, b Place
		ok   bool
	}{
		"ascending": {early, late, true}, "descending": {late, early, false},
		"the same": {late, late, false},
	} {
		part := *s
		part.Sections = slices.Concat(s.Sections, from(c.a), from(c.b))
		if _, err := Segments(&part, 0); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSegmentsOfThreads: segments are of the thread that has their number, wherever they stand.
func TestSegmentsOfThreads(t *testing.T) {
	s := recorded(t, []int{0, 1, 2, 2})
	s.Threads = append(s.Threads, s.Threads[0], s.Threads[0])
	of := func(number int, at *start) []*wpp.Section {
		log := Log{start: at}
		return log.Sections(number)
	}
	later := &start{at: Place{Symbol: 1, Step: 1, Block: 2, Insn: 3},
		state: machine.New().AppendState(nil)}
	code := slices.Collect(s.SectionsOf(CodeKind))
	s.Sections = slices.Concat(code, of(1, nil), of(0, nil), of(1, later),
		[]*wpp.Section{ThreadsSection([]int{1, -1, 0})})
	for thread, want := range []int{2, 0, 1} {
		got, err := Segments(s, thread)
		if err != nil || len(got) != want {
			t.Errorf("thread %d: %d segments, %v, want %d", thread, len(got), err, want)
		}
	}
	for name, c := range map[string]struct {
		section *wpp.Section
		want    string
	}{
		"one number twice": {ThreadsSection([]int{1, 1, 0}), "two threads of number 1"},
		"one missing":      {ThreadsSection([]int{1, -1, -1}), "thread of number 0"},
		"too few":          {ThreadsSection([]int{1, -1}), "cut off"},
		"too many":         {ThreadsSection([]int{1, -1, 0, 2}), "1 bytes too many"},
		"a later form":     {wpp.NewSection(ThreadsKind, []byte{9}), "version 9"},
	} {
		part := *s
		part.Sections = append(slices.Clone(s.Sections[:len(s.Sections)-1]), c.section)
		if _, err := Segments(&part, 0); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	s.Sections = s.Sections[1:]
	if got, err := Segments(s, 0); len(got) > 0 || err != nil {
		t.Errorf("of a recording that was cut off: %d segments, %v", len(got), err)
	}
}

// TestSegmentsOfGroups: a segment is read with what it has in common with others of its group, and
// refused where a section of its own is missing: see TestDamagedValues for that of the group.
func TestSegmentsOfGroups(t *testing.T) {
	s := recorded(t, []int{0, 1, 2, 2})
	words := map[uint64]uint64{0x1000: 1, 0x2000: 2}
	first, second := loaded(words), loaded(words)
	second.start = &start{at: Place{Symbol: 1, Step: 1, Block: 2, Insn: 3},
		state: machine.New().AppendState(nil)}
	e := Encode([]*Log{first, second})
	list := e.Sections(0) // what they have in common, then a head and a log of each
	read := func(of ...*wpp.Section) ([]Segment, error) {
		part := *s
		part.Sections = append(slices.Collect(s.SectionsOf(CodeKind)), of...)
		return Segments(&part, 0)
	}
	got, err := read(list...)
	if err != nil || len(got) != 2 {
		t.Fatalf("%d segments, %v", len(got), err)
	}
	for i := range got {
		p, err := got[i].open()
		if err != nil {
			t.Fatal(err)
		}
		var word [8]byte
		if !p.common.read(0x2000, word[:]) || word[0] != 2 {
			t.Errorf("segment %d: %x", i, word)
		}
	}
	for name, c := range map[string]struct {
		sections []*wpp.Section
		want     string
	}{
		"no head": {slices.Concat(list[:3], list[4:]), "values without a beginning"},
		"no log":  {list[:4], "a beginning, and no values"},
	} {
		if _, err := read(c.sections...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestRan: how often paths ran is read as it was written, and refused where it can not be.
func TestRan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		times := rapid.SliceOfN(rapid.OneOf(rapid.Just(uint64(0)), rapid.Uint64Range(0, 40),
			rapid.Uint64Range(0, 1<<20)), 0, 60).Draw(t, "times")
		l := Log{start: &start{}, ran: times}
		r := &reader{rest: l.appendHead(nil)}
		readStart(r, &Code{routines: make([]*Routine, 1)})
		got := make([]uint64, len(times))
		for _, x := range readRan(r, len(times)) {
			got[x.Symbol] = x.Times
		}
		if err := r.end(); err != nil || !slices.Equal(got, times) {
			t.Fatalf("%d, %v, want %d", got, err, times)
		}
	})
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"fewer":     {[]byte{2, 0x11}, "it is cut off"},
		"cut off":   {[]byte{1, 0xf1}, "it is cut off"},
		"no path":   {[]byte{2, 0x81, 0x11}, "path 10 of 10"},
		"far more":  {[]byte{1, 0xf1, 90}, "path 105 of 10"},
		"too often": {[]byte{1, 0x1f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, "that runs"},
	} {
		r := &reader{rest: c.data}
		readRan(r, 10)
		if err := r.end(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
