//go:build linux && cgo

package bpf_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wpptrace/bpf"
	"wpptrace/bpf/usermode"
	"wpptrace/bpf/wire"
	"wpptrace/loader/loads"
	"wpptrace/loader/plan"
)

// bindings are the Go structures that bpf2go made of the C ones.
var bindings = map[string]reflect.Type{
	"site":      reflect.TypeFor[bpf.TracerSite](),
	"call":      reflect.TypeFor[bpf.TracerCall](),
	"life":      reflect.TypeFor[bpf.TracerLife](),
	"batch":     reflect.TypeFor[bpf.TracerBatch](),
	"loss":      reflect.TypeFor[bpf.TracerLoss](),
	"thread":    reflect.TypeFor[bpf.TracerThread](),
	"look":      reflect.TypeFor[bpf.TracerLook](),
	"load_step": reflect.TypeFor[bpf.TracerLoadStep](),
	"states":    reflect.TypeFor[bpf.TracerStates](),
}

func TestStructuresHaveOneLayout(t *testing.T) {
	seen := map[string]int{}
	for _, f := range usermode.Fields() {
		binding, ok := bindings[f.Struct]
		if !ok {
			t.Errorf("struct %s has no Go binding", f.Struct)
			continue
		}
		if f.Name == "" {
			if binding.Size() != f.Size {
				t.Errorf("struct %s is %d bytes in C, %d in Go", f.Struct, f.Size, binding.Size())
			}
			continue
		}
		seen[f.Struct]++
		name := strings.ReplaceAll(f.Name, "_", "")
		member, ok := binding.FieldByNameFunc(func(s string) bool {
			return strings.EqualFold(s, name)
		})
		if !ok {
			t.Errorf("%s.%s is not in the Go binding", f.Struct, f.Name)
			continue
		}
		got := usermode.Field{Struct: f.Struct, Name: f.Name, Offset: member.Offset,
			Size: member.Type.Size()}
		if diff := cmp.Diff(f, got); diff != "" {
			t.Errorf("C and Go differ (-C +Go):\n%s", diff)
		}
	}
	for name, binding := range bindings {
		if want := binding.NumField() - 1; seen[name] != want { // all but structs.HostLayout
			t.Errorf("struct %s: %d fields compared, the binding has %d", name, seen[name], want)
		}
	}
}

func TestBatchHeaderIsWires(t *testing.T) {
	events, _ := bindings["batch"].FieldByName("Events")
	if events.Offset != wire.BatchHeader {
		t.Errorf("the events of a batch begin at %d, wire.BatchHeader is %d", events.Offset,
			wire.BatchHeader)
	}
	if events.Type.Len() != usermode.BatchEvents {
		t.Errorf("a batch has %d events in Go, %d in C", events.Type.Len(), usermode.BatchEvents)
	}
}

func TestLimitsAgree(t *testing.T) {
	for _, c := range []struct {
		name    string
		c, ours int
	}{
		{"sites of an event", usermode.MaxSites, wire.MaxSites},
		{"sites of a plan", usermode.MaxSites, plan.MaxSites},
		{"the first probe for values alone", usermode.ExtraCookies, loads.FirstExtra},
		{"bits of a captured value", wire.ValueBits, plan.CaptureBits},
		{"callers followed", usermode.ChainMax, plan.MaxProbeFreeCallers + 1},
		{"steps of a hit's load programs", int(bpf.TracerLoadLimitLOAD_STEPS), loads.MostSteps},
		{"their reads", int(bpf.TracerLoadLimitLOAD_FETCHES), loads.MostReads},
		{"their stores", int(bpf.TracerLoadLimitLOAD_STORES), loads.MostStores},
		{"bytes of a read", int(bpf.TracerLoadLimitLOAD_BYTES), loads.MostBytes},
		{"their cells", int(bpf.TracerCellCELLS), loads.Cells},
		{"the cell that holds 0", int(bpf.TracerCellNO_CELL), loads.NoCell},
		{"the last load operation", int(bpf.TracerLoadOpLOAD_STORE), int(loads.Store)},
		{"condition of no conditional jump", usermode.ConditionNone, plan.NoCondition},
	} {
		if c.c != c.ours {
			t.Errorf("%s: %d in C, %d in Go", c.name, c.c, c.ours)
		}
	}
}

func TestPlacesAgree(t *testing.T) {
	for c, ours := range map[bpf.TracerOrigin]wire.Origin{
		bpf.TracerOriginORIGIN_INSIDE: wire.Inside, bpf.TracerOriginORIGIN_OUTSIDE: wire.Outside,
		bpf.TracerOriginORIGIN_HANDLER:          wire.Handler,
		bpf.TracerOriginORIGIN_HANDLER_OUTSIDE:  wire.HandlerOutside,
		bpf.TracerOriginORIGIN_UNREADABLE:       wire.Unreadable,
		bpf.TracerOriginORIGIN_TRUNCATED:        wire.Truncated,
		bpf.TracerOriginORIGIN_KILLED:           wire.Killed,
		bpf.TracerOriginORIGIN_RETURNS_TO_IMAGE: wire.ReturnsToImage,
	} {
		if c != bpf.TracerOrigin(ours) {
			t.Errorf("place %d in C, %d in Go", c, ours)
		}
	}
}

// TestThreadFitsTaskStorage keeps what is remembered of a thread below the kernel's limit for task
// storage.
func TestThreadFitsTaskStorage(t *testing.T) {
	const limit = 65400
	if size := bindings["thread"].Size(); size > limit {
		t.Errorf("struct thread is %d bytes, task storage holds %d", size, limit)
	}
}

func TestEventsOfCAreWires(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		site := rapid.IntRange(0, wire.MaxSites-1).Draw(t, "site")
		outcome := rapid.IntRange(0, 1).Draw(t, "outcome")
		value := rapid.Uint64().Draw(t, "value")
		place := wire.Origin(rapid.IntRange(0, int(wire.Killed)).Draw(t, "place"))
		for _, c := range []struct {
			name    string
			c, ours wire.Event
		}{
			{"witness", usermode.Hit(site, outcome, value), wire.MakeHit(site, outcome, value)},
			{"from", usermode.Caller(place, value), wire.MakeCaller(place, value)},
			{"resync", usermode.Caller(place|wire.Origin(bpf.TracerOriginORIGIN_RESYNC), value),
				wire.MakeResync(place, value)},
			{"case", usermode.Captured(value), wire.MakeCaptured(value)},
			{"repeat", usermode.Repeat(value >> 4), wire.MakeRepeat(value >> 4)},
			{"end", usermode.End(place, value), wire.MakeEnd(place, value)},
		} {
			if c.c != c.ours {
				t.Errorf("%s: %x in C, %x in Go", c.name, uint64(c.c), uint64(c.ours))
			}
		}
	})
}

// TestConditions compares all conditions under all flags with the table of the processor's manual.
func TestConditions(t *testing.T) {
	const cf, pf, zf, sf, of = 1 << 0, 1 << 2, 1 << 6, 1 << 7, 1 << 11
	manual := [16]func(is func(uint64) bool) bool{
		0:  func(is func(uint64) bool) bool { return is(of) },                      // o
		1:  func(is func(uint64) bool) bool { return !is(of) },                     // no
		2:  func(is func(uint64) bool) bool { return is(cf) },                      // b
		3:  func(is func(uint64) bool) bool { return !is(cf) },                     // ae
		4:  func(is func(uint64) bool) bool { return is(zf) },                      // e
		5:  func(is func(uint64) bool) bool { return !is(zf) },                     // ne
		6:  func(is func(uint64) bool) bool { return is(cf) || is(zf) },            // be
		7:  func(is func(uint64) bool) bool { return !is(cf) && !is(zf) },          // a
		8:  func(is func(uint64) bool) bool { return is(sf) },                      // s
		9:  func(is func(uint64) bool) bool { return !is(sf) },                     // ns
		10: func(is func(uint64) bool) bool { return is(pf) },                      // p
		11: func(is func(uint64) bool) bool { return !is(pf) },                     // np
		12: func(is func(uint64) bool) bool { return is(sf) != is(of) },            // l
		13: func(is func(uint64) bool) bool { return is(sf) == is(of) },            // ge
		14: func(is func(uint64) bool) bool { return is(zf) || is(sf) != is(of) },  // le
		15: func(is func(uint64) bool) bool { return !is(zf) && is(sf) == is(of) }, // g
	}
	const others = 1<<1 | 1<<4 | 1<<9 | 1<<10 // reserved, AF, IF, DF
	for flags := range uint64(1 << 12) {
		for code := range uint8(16) {
			want := manual[code](func(f uint64) bool { return flags&f != 0 })
			if got := usermode.Condition(code, flags|others); got > 1 || got == 1 != want {
				t.Fatalf("condition %d under flags %#x: %d, want %v", code, flags, got, want)
			}
		}
	}
}
