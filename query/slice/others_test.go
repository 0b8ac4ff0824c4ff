package slice

import (
	"fmt"
	"testing"

	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
)

func accessOf(write bool, addr uint64, bytes ...byte) machine.Access {
	a := machine.Access{Addr: addr, Size: len(bytes), Write: write, At: machine.Confirmed,
		Known: machine.Confirmed}
	copy(a.Bytes[:], bytes)
	return a
}

// TestReadsOfOthers: a word of which a byte is not what the thread has left there is written by
// others, all of it; another word of the same access is not.
func TestReadsOfOthers(t *testing.T) {
	for name, c := range map[string]struct {
		before []machine.Access
		read   machine.Access
		want   string // dependences; who wrote there last before others; and whether they did
	}{
		"as written": {[]machine.Access{accessOf(true, 0, 1, 0)}, accessOf(false, 0, 1, 0),
			"[0] -1 false"},
		"overwritten": {[]machine.Access{accessOf(true, 0, 1, 0, 0, 0)},
			accessOf(false, 0, 7, 8, 9, 0), "[] 0 true"},
		"one word of two": {[]machine.Access{accessOf(true, 6, 1, 1), accessOf(true, 8, 2, 2)},
			accessOf(false, 6, 1, 1, 2, 3), "[0] 1 true"},
		"read again": {[]machine.Access{accessOf(false, 0, 1)}, accessOf(false, 0, 2),
			"[] -1 true"},
		"nothing known": {nil, accessOf(false, 0, 2), "[] -1 false"},
	} {
		b := NewBuilder(func(int) Flow { return nil })
		for _, a := range append(c.before, c.read) {
			e := &wet.Executed{Code: &machine.Insn{Op: machine.NoOp},
				Accesses: []machine.Access{a}}
			if err := b.Executed(e); err != nil {
				t.Fatal(err)
			}
		}
		g, last := b.Graph(), len(c.before)
		on := []int{}
		for i, by := range g.DependsOn(last) {
			if by == Data {
				on = append(on, i)
			}
		}
		wrote, is := g.Others(last)
		if got := fmt.Sprint(on, wrote, is); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

// TestKeptRegisters: what a call has kept elsewhere and put back is what it was before; what it has
// changed is the call's.
func TestKeptRegisters(t *testing.T) {
	for name, c := range map[string]struct {
		popped wet.Register
		want   int
	}{
		"put back": {wet.Register{Number: machine.RBX, Value: 5, Known: machine.Confirmed}, 0},
		"changed":  {wet.Register{Number: machine.RBX, Value: 6, Known: machine.Confirmed}, 3},
		"unknown":  {wet.Register{Number: machine.RBX}, 3},
	} {
		b := NewBuilder(func(int) Flow { return nil })
		uses := machine.Insn{Op: machine.Mov, Len: 1, Size: 8, Src: register(machine.RBX)}
		five := wet.Register{Number: machine.RBX, Value: 5, Known: machine.Confirmed}
		push, pop := move, move
		for _, e := range []wet.Executed{
			{Addr: 1, Code: &move, Written: []wet.Register{five}},
			{Addr: 2, Code: &calls},
			{Place: wet.Place{Routine: 1}, Addr: 100, Code: &push},
			{Place: wet.Place{Routine: 1, Insn: 1}, Addr: 101, Code: &pop,
				Written: []wet.Register{c.popped}},
			{Place: wet.Place{Routine: 1, Insn: 2}, Addr: 102, Code: &rets},
			{Addr: 3, Code: &uses},
		} {
			if err := b.Executed(&e); err != nil {
				t.Fatal(err)
			}
		}
		got := -1
		for i, by := range b.Graph().DependsOn(5) {
			if by == Data {
				got = i
			}
		}
		if got != c.want {
			t.Errorf("%s: it depends on %d, want %d", name, got, c.want)
		}
	}
}

// TestHolds: a store may be what is read if all that both have is equal.
func TestHolds(t *testing.T) {
	read := accessOf(false, 4, 1, 2, 3, 4)
	for want, stores := range map[bool][]machine.Access{
		true:  {accessOf(true, 4, 1, 2, 3, 4), accessOf(true, 6, 3), accessOf(true, 2, 9, 9, 1, 2)},
		false: {accessOf(true, 4, 1, 2, 3, 5), accessOf(true, 8, 1), accessOf(true, 0, 1, 2, 3, 4)},
	} {
		for i := range stores {
			if holds(&read, &stores[i]) != want {
				t.Errorf("%+v: %v", stores[i].Addr, !want)
			}
		}
	}
}

// TestReadOf: a store is of what was read in any of the words that it has bytes of.
func TestReadOf(t *testing.T) {
	f, g := &Foreign{Since: &Place{}}, &Foreign{}
	reads := map[uint64][]*Foreign{1: {f}, 2: {f, g}, 4: {g}}
	for _, c := range []struct {
		addr       uint64
		size, want int
	}{{0, 8, 0}, {8, 1, 1}, {0, 16, 1}, {4, 8, 1}, {8, 16, 2}, {24, 8, 0}, {31, 2, 1}} {
		if got := readOf(reads, &machine.Access{Addr: c.addr, Size: c.size}); len(got) != c.want {
			t.Errorf("%d bytes at %d: %d reads, want %d", c.size, c.addr, len(got), c.want)
		}
	}
}
