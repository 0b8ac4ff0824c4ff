package wet

import (
	"slices"
	"strings"
	"testing"

	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wpp"
)

// FuzzSections: whatever sections say, they are refused with one error, or replayed.
func FuzzSections(f *testing.F) {
	stream := []int{0, 1, 2, 2, 4, 3, 0, 1}
	s := recorded(f, stream)
	var seeds [4][]byte
	for i, x := range s.Sections {
		data, err := x.Data()
		if err != nil {
			f.Fatal(err)
		}
		seeds[i] = data
	}
	common := appendCommon(nil, [][]run{{{addr: 0x8000, data: []byte{1, 2, 3, 4}}}})
	ofGroup := slices.Concat(seeds[1][:2], []byte{1}, seeds[1][3:]) // version, thread, place
	f.Add(seeds[0], seeds[1], seeds[2], seeds[3], common)
	f.Add(seeds[0], ofGroup, seeds[2], seeds[3], common)
	f.Add(seeds[0], []byte{2, 0}, []byte{0}, []byte{1}, []byte{})
	f.Add([]byte{1, 0, 0}, seeds[1], seeds[2], []byte{}, []byte{0, 0, 0})
	f.Fuzz(func(t *testing.T, code, head, log, counts, common []byte) {
		s := snapshot(stream, wpp.NewSection(CodeKind, code), wpp.NewSection(CommonKind, common),
			wpp.NewSection(HeadKind, head), wpp.NewSection(LogKind, log),
			wpp.NewSection(CountsKind, counts))
		got, err := replay(s)
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("an error of several lines: %q", err)
		}
		if len(got) > 100 {
			t.Errorf("%d instructions were replayed", len(got))
		}
		if _, err := CountsOf(s); err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("an error of several lines: %q", err)
		}
	})
}

// sure is an oracle that knows all registers at each hit.
type sure struct{ log Log }

func (o *sure) Begin(at Place) (lost bool, err error) {
	o.log.Begin(at, &Entry{})
	return false, nil
}

func (o *sure) Site(at Place, _ int, m *machine.Machine) (lost bool, err error) {
	e := Entry{Registers: 0xffff, HasFlags: true}
	for n := range e.Values {
		e.Values[n] = 0x8000 + 8*uint64(n)
	}
	e.Apply(m)
	o.log.Begin(at, &e)
	return false, nil
}

func (o *sure) Load(l *Load) (k machine.Knowledge, isNew bool) {
	read := []byte{1, 2, 3, 4, 5, 6, 7, 8}[:len(l.Bytes)]
	isNew = o.log.Load(l, read, machine.Confirmed)
	copy(l.Bytes, read)
	return machine.Confirmed, isNew
}

func (o *sure) Resync(at Place, m *machine.Machine) (begins, lost bool, err error) {
	o.log.Recover(at, &Recovery{})
	return true, false, nil
}

func (o *sure) Result(at Place, _ uint16, _ *machine.Machine) { o.log.Result(at, &Recovery{}) }
func (o *sure) Used(Place, uint16, *machine.Machine)          {}
func (o *sure) Leaves(machine.Outcome, *machine.Machine)      {}

func (o *sure) Doubt()     {}
func (o *sure) Disagrees() {}

// recorded is a snapshot of some symbols with values.
func recorded(t testing.TB, stream []int) *wpp.Snapshot {
	code := NewCode(func(int) *Routine { return &Routine{Blocks: blocks()} })
	o := &sure{}
	w := NewWalker(code, o, nil)
	if err := w.Begin(); err != nil {
		t.Fatal(err)
	}
	for _, n := range stream {
		if err := walk(w, n); err != nil {
			t.Fatal(err)
		}
		ran(&o.log, n)
	}
	sections := append([]*wpp.Section{code.Section()}, o.log.Sections(0)...)
	return snapshot(stream, append(sections, Counts{Hits: 3}.Section())...)
}

// TestDamagedValues: sections that are cut off, or of something else, are refused, each with the
// error that says so.
func TestDamagedValues(t *testing.T) {
	s := recorded(t, []int{0, 1, 2, 4, 0})
	data := func(i int) []byte {
		b, err := s.Sections[i].Data()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	code, head, log := data(0), data(1), data(2)
	more := func(b []byte) []byte { return append(b[:len(b):len(b)], 0) }
	for name, c := range map[string]struct {
		code, head, log []byte
		want            string
	}{
		"code cut off":         {code[:len(code)-1], head, log, "it is cut off"},
		"code with more":       {more(more(code)), head, log, "routines that do not ascend"},
		"code of no routine":   {append(code[:len(code):len(code)], 1), head, log, "changed routine"},
		"code of a later form": {[]byte{9}, head, log, "it is of version 9"},
		"no code":              {nil, head, log, "section of instructions: it is cut off"},
		"head cut off":         {code, head[:len(head)-1], log, "it is cut off"},
		"head with more":       {code, more(head), log, "1 bytes too many"},
		"head of a later form": {code, []byte{9}, log, "version 9"},
		"head of no thread":    {code, []byte{version, 7, 0}, log, "thread of number 7"},
		"head of no group":     {code, []byte{version, 0, 1}, log, "a group that there is not"},
		"head amid no group":   {code, []byte{version, 0, 2}, log, "a group that there is not"},
		"head of nothing":      {code, []byte{version, 0}, log, "it is cut off"},
		"log cut off":          {code, head, log[:len(log)-1], "it is cut off"},
		"log with more":        {code, head, more(log), "1 bytes too many"},
	} {
		t.Run(name, func(t *testing.T) {
			s := snapshot([]int{0, 1, 2, 4, 0}, wpp.NewSection(CodeKind, c.code),
				wpp.NewSection(HeadKind, c.head), wpp.NewSection(LogKind, c.log))
			if _, err := replay(s); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
