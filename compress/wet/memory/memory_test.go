package memory

import (
	"testing"

	"pgregory.net/rapid"

	"wpptrace/compress/wet/machine"
)

// A plain is what Memory is, byte by byte.
type plain map[uint64]cell

type cell struct {
	value                     byte
	fresh, private, confirmed bool
	stored, held, touched     bool
}

func (p plain) copy() plain {
	q := plain{}
	for a, c := range p {
		q[a] = c
	}
	return q
}

// TestMemoryIsPlain: whatever is stored, loaded and undone, a memory answers as bytes would.
func TestMemoryIsPlain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m Memory
		want, before := plain{}, plain{}
		m.Keep()
		for range rapid.IntRange(1, 60).Draw(t, "calls") {
			addr := rapid.SampledFrom([]uint64{0, 60, 4090, 8190, 65530, ^uint64(0) - 70}).
				Draw(t, "page") + uint64(rapid.IntRange(0, 8).Draw(t, "at"))
			n := rapid.SampledFrom([]int{1, 2, 4, 8, 16, 64}).Draw(t, "size")
			b := rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "bytes")
			private := rapid.Bool().Draw(t, "private")
			k := rapid.SampledFrom([]machine.Knowledge{machine.Unknown, machine.Unconfirmed,
				machine.Confirmed}).Draw(t, "knowledge")
			switch rapid.IntRange(0, 12).Draw(t, "call") {
			case 0:
				m.Lose()
				want.each(func(_ uint64, c *cell) { c.fresh = false })
			case 1:
				m.Begin()
				want.each(func(_ uint64, c *cell) { c.stored = false })
				before = want.copy()
			case 2:
				m.Rollback()
				want = before.copy()
				want.each(func(_ uint64, c *cell) { c.fresh, c.private = false, false })
			case 3:
				m.LoseAll()
				want.each(func(_ uint64, c *cell) { c.fresh, c.private = false, false })
			case 4:
				m.Drop(addr)
				want.each(func(a uint64, c *cell) { c.private = c.private && a >= addr })
			case 12:
				m.Begin()
				m.BeginSegment()
				want.each(func(_ uint64, c *cell) {
					c.stored, c.held, c.touched = false, false, false
				})
				before = want.copy()
			case 5, 6, 7:
				m.Store(addr, b, k, private)
				want.put(addr, b, k, private, true)
			case 8:
				m.Learn(addr, b, k, private)
				want.put(addr, b, k, private, false)
			default:
				want.check(t, &m, addr, n, private)
			}
		}
	})
}

// TestCalm: what was known before code that writes no memory, or none of the stack, is calm behind
// it, but below the stack's end; what was stored since other code is, too.
func TestCalm(t *testing.T) {
	const stack, heap = 0x7fff0010, 0x1000
	for _, c := range []struct {
		name                      string
		run                       func(m *Memory)
		heap, stack, below, again bool
	}{
		{"other code", func(m *Memory) { m.Lose() }, false, false, false, true},
		{"reads", func(m *Memory) { m.Lose(); m.Calm(stack, false) }, true, true, false, true},
		{"allocates", func(m *Memory) { m.Lose(); m.Calm(stack, true) }, false, true, false, true},
		{"reads, and other code", func(m *Memory) { m.Lose(); m.Calm(stack, false); m.Lose() },
			false, false, false, true},
		{"other code, and reads", func(m *Memory) { m.Lose(); m.Lose(); m.Calm(stack, false) },
			false, false, false, true},
		{"reads twice", func(m *Memory) {
			m.Lose()
			m.Calm(stack, false)
			m.Lose()
			m.Calm(stack, false)
		}, true, true, false, true},
		{"is undone", func(m *Memory) { m.Rollback() }, false, false, false, true},
	} {
		m := &Memory{}
		m.Keep()
		for _, at := range []uint64{heap, stack, stack - 8} {
			m.Store(at, make([]byte, 8), machine.Confirmed, false)
		}
		m.Store(heap+8, make([]byte, 8), machine.Unknown, false)
		m.Begin()
		c.run(m)
		m.Store(heap+16, make([]byte, 8), machine.Unconfirmed, false)
		for at, want := range map[uint64]bool{heap: c.heap, heap + 8: false, stack: c.stack,
			stack - 8: c.below, heap + 16: c.again, heap + 12: false} {
			if got := m.IsCalm(at, 8); got != want {
				t.Errorf("%s: what is at %x is calm: %v, want %v", c.name, at, got, want)
			}
		}
	}
}

func (p plain) each(change func(a uint64, c *cell)) {
	for a, c := range p {
		change(a, &c)
		p[a] = c
	}
}

func (p plain) put(addr uint64, b []byte, k machine.Knowledge, private, store bool) {
	for i, v := range b {
		a := addr + uint64(i)
		if k == machine.Unknown {
			p[a] = cell{value: v, touched: true}
			continue
		}
		p[a] = cell{v, true, private, k == machine.Confirmed, store || p[a].stored, true, true}
	}
}

func (p plain) check(t *rapid.T, m *Memory, addr uint64, n int, private bool) {
	got := make([]byte, n)
	h := m.Load(addr, got, private)
	stored := m.Stored(addr, n)
	touched := false
	for i := range n {
		touched = touched || p[addr+uint64(i)].touched
	}
	if is := m.IsTouched(addr, n); is != touched {
		t.Fatalf("%d bytes at %x are touched: %t, want %t", n, addr, is, touched)
	}
	for i := range n {
		c, ok := p[addr+uint64(i)]
		known := c.fresh || c.private && private
		if c.held != (h.Held>>i&1 != 0) || known != (h.Known>>i&1 != 0) ||
			(known && c.confirmed) != (h.Confirmed>>i&1 != 0) ||
			ok && c.value != got[i] || c.stored && stored>>i&1 == 0 {
			t.Fatalf("byte %d at %x: %x, want %v %v", i, addr, h, ok, c)
		}
	}
}

func BenchmarkStoreLoad(b *testing.B) {
	var m Memory
	var to [8]byte
	m.Keep()
	for i := range b.N {
		if i%16 == 0 {
			m.Begin()
		}
		addr := 0x7fff0000 + uint64(i%512)*8
		m.Store(addr, to[:], machine.Confirmed, true)
		m.Load(addr, to[:], true)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	var m Memory
	for i := range uint64(mostPages + 1) {
		m.Store(i*pageSize, []byte{1}, machine.Confirmed, false)
	}
	if m.Bytes() == 0 {
		t.Error("it takes no memory")
	}
	m.Begin()
	m.BeginSegment()
	if h := m.Load(0, make([]byte, 1), true); h != (Held{}) || m.Bytes() != 0 {
		t.Errorf("%x is held of what was forgotten", h)
	}
}
