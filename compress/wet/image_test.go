package wet

import (
	"bytes"
	"encoding/binary"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wet/memory"
)

// loaded is a log of a segment that has loaded words, each at an address of its own.
func loaded(words map[uint64]uint64) *Log {
	l, m := &Log{}, &memory.Memory{}
	l.Begin(at1(0), &Entry{})
	for _, addr := range slices.Sorted(maps.Keys(words)) {
		load := &Load{Place: at1(1), Addr: addr, Bytes: make([]byte, 8), memory: m}
		read := []byte{byte(words[addr]), byte(words[addr] >> 8), 0, 0, 0, 0, 0, 1}
		l.Load(load, read, machine.Confirmed)
		m.Learn(addr, read, machine.Confirmed, false)
	}
	return l
}

// TestImage: an image has what is put there last, and says so only of bytes that were put.
func TestImage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, want := &image{}, map[uint64]byte{}
		for range rapid.IntRange(0, 10).Draw(t, "runs") {
			addr := rapid.SampledFrom([]uint64{0, 50, 4080, 8190, ^uint64(0) - 4200}).
				Draw(t, "run") + uint64(rapid.IntRange(0, 9).Draw(t, "at"))
			data := rapid.SliceOfN(rapid.Byte(), 1, 4200).Draw(t, "data")
			m.put(addr, data)
			for i, b := range data {
				want[addr+uint64(i)] = b
			}
		}
		for range 20 {
			addr := rapid.SampledFrom([]uint64{0, 50, 4050, 8150, ^uint64(0) - 4200}).
				Draw(t, "load") + uint64(rapid.IntRange(0, 80).Draw(t, "from"))
			to := make([]byte, rapid.IntRange(1, 64).Draw(t, "size"))
			is := true
			held := make([]byte, len(to))
			for i := range held {
				b, ok := want[addr+uint64(i)]
				held[i], is = b, is && ok
			}
			if got := m.read(addr, to); got != is || is && !bytes.Equal(to, held) {
				t.Fatalf("%d bytes at %x: %x %t, want %x %t", len(to), addr, to, got, held, is)
			}
		}
	})
}

// TestWhatIsInCommon: what several segments load alike is said once, and what is another meanwhile
// is so for those behind.
func TestWhatIsInCommon(t *testing.T) {
	many, others := map[uint64]uint64{}, map[uint64]uint64{}
	for i := range uint64(500) {
		many[0x10000+8*i] = i * i * 7919
		others[0x90000+8*i] = i * i * 7907
	}
	changed := map[uint64]uint64{}
	for addr, w := range many {
		changed[addr] = w + addr/64%2
	}
	size := func(logs ...map[uint64]uint64) int {
		var group []*Log
		for _, words := range logs {
			group = append(group, loaded(words))
		}
		e := Encode(group)
		return e.Size()
	}
	one, two, four := size(many), size(many, many), size(many, many, many, many)
	if four > two+two/10 || two > one+one/2 {
		t.Errorf("%d bytes once, %d twice, %d four times", one, two, four)
	}
	if apart, both := one+size(others), size(many, others); both > apart+8 {
		t.Errorf("%d bytes of segments that have nothing in common, %d apart", both, apart)
	}
	if n := size(many, many, changed, changed); n > two+two*3/4 {
		t.Errorf("%d bytes where half has changed, %d where nothing has", n, two)
	}
}

// TestCommonPages: what segments have in common is never more than is read: of more pages each says
// what it has there.
func TestCommonPages(t *testing.T) {
	l := &Log{}
	for page := range uint64(mostImagePages + 1) {
		l.untouched = append(l.untouched, untouched{len(l.said), page * imagePageSize, 8})
		l.said.say(cellOf(at1(1), loadCode), otherwise, 0)
		l.said.say(cellOf(at1(1), loadWord), page, 0)
	}
	runs, _ := common([]*Log{l, l})
	r := &reader{rest: appendCommon(nil, runs)}
	c := readCommon(r)
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	m, err := c.imageOf(1)
	if err != nil {
		t.Fatal(err)
	}
	var word [8]byte
	const last = mostImagePages - 1
	if !m.read(last*imagePageSize, word[:]) || binary.LittleEndian.Uint64(word[:]) != last ||
		m.read((last+1)*imagePageSize, word[:]) {
		t.Errorf("the image has %d pages, and not %d, or another word: %x", len(m.pages),
			mostImagePages, word)
	}
}

// TestCommonRefuses: what segments have in common is refused where it is damaged.
func TestCommonRefuses(t *testing.T) {
	whole := Encode([]*Log{loaded(map[uint64]uint64{8: 1, 4096: 2}),
		loaded(map[uint64]uint64{8: 1, 4096: 2})})
	read := func(b []byte, segment int) error {
		r := &reader{rest: b}
		c := readCommon(r)
		if err := r.end(); err != nil {
			return err
		}
		_, err := c.imageOf(segment)
		return err
	}
	if err := read(whole.common, 1); err != nil {
		t.Fatal(err)
	}
	column := func(where, data []byte) []byte {
		return appendColumn(appendColumn(nil, where), data)
	}
	far := make([]byte, 0, 1<<20)
	far = append(far, 0xff, 0xff, 0x03) // runs: one a page
	for range 1 << 16 {
		far = append(far, 0x80, 0x20, 0)
	}
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"cut off":       {whole.common[:len(whole.common)-1], "cut off"},
		"nothing":       {nil, "cut off"},
		"more":          {append(bytes.Clone(whole.common), 0), "1 bytes too many"},
		"no columns":    {[]byte{3, 3, 1, 2, 3, 0, 0}, "damaged"},
		"no ranges":     {column(nil, []byte{1}), "cut off"},
		"many ranges":   {column([]byte{100}, []byte{1}), "100 common ranges"},
		"long ranges":   {column([]byte{1, 0, 100}, []byte{1}), "100 common bytes"},
		"too few bytes": {column([]byte{2, 0, 0, 0, 0}, []byte{1}), "cut off"},
		"many pages":    {column(far, make([]byte, 1<<16)), "more memory"},
	} {
		if err := read(c.data, 0); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// A deed is what a segment does to memory.
type deed struct {
	addr  uint64
	bytes []byte
	k     machine.Knowledge
	store bool
}

// do does it to a memory. What a load comes to is asked of load.
func (d *deed) do(m *memory.Memory, load func(*Load) (machine.Knowledge, bool)) ([]byte,
	machine.Knowledge) {
	if d.store {
		m.Store(d.addr, d.bytes, d.k, false)
		return nil, d.k
	}
	l := &Load{Place: at1(int(d.addr % 3)), Addr: d.addr, memory: m,
		Bytes: make([]byte, len(d.bytes))}
	l.Held = m.Load(d.addr, l.Bytes, false)
	k, isNew := load(l)
	if isNew {
		m.Learn(d.addr, l.Bytes, k, false)
	}
	return l.Bytes, k
}

// TestSegmentsOfAGroup: whatever segments load and store, each is replayed alone as it was, with
// what it has in common with the others of its group.
func TestSegmentsOfAGroup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		world := make([]byte, 40)
		var logs []*Log
		var all [][]deed
		for range rapid.IntRange(2, MostInGroup).Draw(t, "segments") {
			if rapid.IntRange(0, 3).Draw(t, "changes") == 0 {
				world[rapid.IntRange(0, len(world)-1).Draw(t, "where")]++
			}
			l, m, deeds := &Log{}, &memory.Memory{}, []deed{}
			l.Begin(at1(0), &Entry{})
			for range rapid.IntRange(1, 8).Draw(t, "deeds") {
				n := rapid.SampledFrom([]int{1, 2, 8, 9}).Draw(t, "size")
				at := 8 * rapid.IntRange(0, (len(world)-n)/8).Draw(t, "at")
				d := deed{4096 - 16 + uint64(at), bytes.Clone(world[at : at+n]),
					rapid.SampledFrom([]machine.Knowledge{machine.Unknown, machine.Confirmed,
						machine.Unconfirmed, machine.Confirmed}).Draw(t, "knowledge"),
					rapid.IntRange(0, 4).Draw(t, "store") == 0}
				d.do(m, func(of *Load) (machine.Knowledge, bool) {
					isNew := l.Load(of, d.bytes, d.k)
					copy(of.Bytes, d.bytes)
					return d.k, isNew
				})
				deeds = append(deeds, d)
			}
			logs, all = append(logs, l), append(all, deeds)
		}
		e := Encode(logs)
		for i, s := range e.segments {
			p := readLog(&reader{rest: s.log})
			if e.common != nil {
				c := readCommon(&reader{rest: e.common})
				var err error
				if p.common, err = c.imageOf(i); err != nil {
					t.Fatal(err)
				}
			}
			p.memory = &memory.Memory{}
			if _, err := p.Begin(at1(0)); err != nil {
				t.Fatal(err)
			}
			for j := range all[i] {
				d := &all[i][j]
				b, k := d.do(p.memory, p.Load)
				if err := p.failed(); err != nil {
					t.Fatal(err)
				}
				if k != d.k || !d.store && k != machine.Unknown && !bytes.Equal(b, d.bytes) {
					t.Fatalf("segment %d: %+v is %x, %d", i, d, b, k)
				}
			}
		}
	})
}
