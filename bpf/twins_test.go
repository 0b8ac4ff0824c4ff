//go:build linux && cgo

package bpf_test

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wpptrace/bpf"
	"wpptrace/bpf/usermode"
	"wpptrace/bpf/wire"
	"wpptrace/loader/attach"
	"wpptrace/loader/loads"
)

// A hashed process has memory everywhere but in one page of eight: bytes that are a hash of their
// addresses. It is mapped at base.
type hashed map[uint64]uint32 // where programs go on, by link-time return address

func (hashed) byteAt(address uint64) (byte, bool) {
	spread := func(x uint64) uint64 { return x * 0x9e3779b97f4a7c15 >> 56 }
	return byte(spread(address)), spread(address>>12)&7 != 0
}

func (h hashed) peek(address, size uint64) (value uint64, ok bool) {
	var bytes [8]byte
	ok = h.Read(address, bytes[:size])
	return binary.LittleEndian.Uint64(bytes[:]), ok
}

func (h hashed) Read(address uint64, to []byte) bool {
	for i := range to {
		var ok bool
		if to[i], ok = h.byteAt(address + uint64(i)); !ok {
			return false
		}
	}
	return true
}

func (h hashed) Continuation(ra uint64) (uint32, bool) {
	to, ok := h[ra-base]
	return to, ok
}

func (h hashed) Bias(int) uint64 { return base }

// A writer writes random load programs.
type writer struct {
	*rand.Rand
	plan *loads.Plan
	// what is written by now on every way here
	cells  []uint8
	places []place
}

// A place is where a fetch has put so many bytes.
type place struct{ at, size uint8 }

func (w *writer) cell() uint8 { return w.cells[w.IntN(len(w.cells))] }

func (w *writer) size() uint8 { return []uint8{1, 2, 4, 8}[w.IntN(4)] }

// result is a cell that holds none yet, or none.
func (w *writer) result(next *uint8) uint8 {
	if w.IntN(16) == 0 {
		return uint8(w.IntN(loads.ImageBias)) // of a register
	}
	if *next == loads.NoCell {
		return loads.NoCell
	}
	*next++
	return *next - 1
}

// program writes one of up to n steps, ended by one that says how it goes on.
func (w *writer) program(n int, last loads.Step) (first uint32) {
	first = uint32(len(w.plan.Steps))
	w.cells, w.places = nil, nil
	for c := range uint8(loads.FirstResult) {
		w.cells = append(w.cells, c)
	}
	w.cells = append(w.cells, loads.NoCell)
	next, fetches := uint8(loads.FirstResult), uint8(0)
	for n > 0 {
		skipped := 0
		if w.IntN(4) == 0 {
			skipped = w.IntN(4)
			w.plan.Steps = append(w.plan.Steps, loads.Step{Op: loads.Branch, A: w.cell(),
				B: w.cell(), Size: w.size(), Sign: uint8(w.IntN(2)), Imm: w.Int32() >> w.IntN(32),
				Condition: []uint8{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 14, 15}[w.IntN(14)],
				Jump:      uint32(skipped)})
		}
		cells, places := slices.Clone(w.cells), slices.Clone(w.places)
		for range skipped {
			w.step(&next, &fetches)
		}
		w.cells, w.places = cells, places
		w.step(&next, &fetches)
		n -= 1 + skipped
	}
	w.plan.Steps = append(w.plan.Steps, last)
	return first
}

// step writes a step that goes on at the next one.
func (w *writer) step(next, fetches *uint8) {
	s := loads.Step{A: w.cell(), B: w.cell(), Scale: uint8(w.IntN(4)), Size: w.size(),
		Sign: uint8(w.IntN(2)), Imm: w.Int32() >> w.IntN(32)}
	switch op := w.IntN(8); {
	case op < 3 && *fetches < loads.MostReads:
		s.Op, s.Dst, s.Size = loads.Fetch, *fetches, uint8(1+w.IntN(loads.MostBytes))
		*fetches++
		w.places = append(w.places, place{s.Dst, s.Size})
	case op == 3 && len(w.places) > 0:
		from := w.places[w.IntN(len(w.places))]
		s.Op, s.A, s.Size, s.Dst = loads.Pick, from.at, min(s.Size, from.size), w.result(next)
		s.Imm = w.Int32N(int32(from.size-s.Size) + 1)
	case op == 4:
		switch s.Op = loads.Leave; w.IntN(8) {
		case 0:
		case 1, 2: // where something is read, or elsewhere
			s.Op = loads.Store
			if n := len(w.plan.Steps); n > 0 && w.plan.Steps[n-1].Op == loads.Fetch {
				from := &w.plan.Steps[n-1]
				from.B, s.A, s.Imm = loads.NoCell, from.A, from.Imm+w.Int32N(8)
			}
		default:
			s.Op = loads.Sum
			s.Dst = w.result(next)
		}
	default:
		s.Op, s.Dst = loads.Sum+loads.Op(w.IntN(int(loads.Extend))), w.result(next)
	}
	if s.Op >= loads.Sum && s.Op <= loads.Extend || s.Op == loads.Pick {
		if s.Dst == loads.NoCell {
			s = loads.Step{Op: loads.Sum, Dst: loads.NoCell, A: loads.NoCell, B: loads.NoCell,
				Size: 8}
		} else {
			w.cells = append(w.cells, s.Dst)
		}
	}
	w.plan.Steps = append(w.plan.Steps, s)
}

// TestTwins: the C of load programs does what loads.Plan.Run does, of which package values makes
// the addresses of what was read.
func TestTwins(t *testing.T) {
	const programs = 20_000
	w := &writer{Rand: rand.New(rand.NewPCG(1, 2))}
	for n := range programs {
		in := hashed{}
		w.plan = &loads.Plan{Steps: make([]loads.Step, 1)}
		end := loads.Step{Op: loads.End}
		there := w.program(w.IntN(8), end)
		in[0x1000] = there
		w.plan.Cases = []uint32{2, there, w.program(w.IntN(8), end)}
		last := []loads.Step{end, {Op: loads.Return, A: uint8(w.IntN(3))},
			{Op: loads.Switch, A: 3, B: loads.NoCell, Size: 1}}[w.IntN(3)]
		l := loads.Look{Leaves: [2]bool{w.IntN(8) == 0, w.IntN(8) == 0}}
		l.First[0] = w.program(w.IntN(24), last)
		w.plan.Steps = append(w.plan.Steps, end)
		if w.IntN(4) == 0 {
			l.Behind = w.program(w.IntN(8), end)
		}
		w.plan.Looks = []loads.Look{l}

		var regs usermode.Registers
		for i := range regs.General {
			regs.General[i] = w.Uint64() >> w.IntN(64)
		}
		regs.General[0], regs.General[3] = base+0x1000, w.Uint64N(4)
		fs := w.Uint64()

		var want wire.State
		read := 0
		want.Left = w.plan.Run(0, 0, true, (*[17]uint64)(append(regs.General[:], fs)), 0, in,
			func(r *loads.Read) {
				for i := 0; i < r.Size; i += 8 {
					want.Words = append(want.Words, binary.LittleEndian.Uint64(r.Bytes[i:]))
				}
				if r.Failed {
					want.FailedReads |= 1 << read
				}
				read++
			})

		r := &rig{usermode.New(sites[:1], nil, base, size), usermode.NewThread(42, 7, false)}
		r.Peek, r.FSBase, r.Cases, r.After = in.peek, fs, w.plan.Cases, in
		r.Looks = []bpf.TracerLook{attach.KernelLook(&l, usermode.ConditionNone, 0)}
		r.Steps = attach.KernelSteps(w.plan.Steps)
		r.Hit(r.thread, 0, &regs)
		list := r.states(t)
		r.thread.Free()
		if len(list) != 1 {
			t.Fatalf("%d states of one hit", len(list))
		}
		got := wire.State{Words: list[0].Words, FailedReads: list[0].FailedReads,
			Left: list[0].Left}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("program %d differs (-Go +C):\n%s\nof %+v, registers %x", n, diff, w.plan,
				regs.General)
		}
	}
}
