package decoder_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wpptrace/bpf/wire"
)

// TestHandlersAtOnce: an instruction faults, and more signals come before the handler of that has
// run its first instruction: the last one's handler runs first. With three, the instructions behind
// the one that had faulted were said to have run, up to a call of external code.
func TestHandlersAtOnce(t *testing.T) {
	p, err := assemble(t.TempDir(), asm+`
	function root
		framed
		probed
		mov %ecx, (%rdx)
		mov (%rcx), %rbx
		call *%rbx
		mov (%rcx), %rbx
		leave
	function onfault
		probed
		ret
		.cfi_endproc
	`)
	if err != nil {
		t.Fatal(err)
	}
	const rootAt, frame = 0x7ffc0000, 0x1000
	root, on, onfault := placeOf(p, "root"), placeOf(p, "on"), placeOf(p, "onfault")
	store := root + 9
	// The stack pointer and the arguments of a handler of signal 14 that has not run.
	beginning := func(cfa uint64) (events []wire.Event) {
		rsp := cfa - 8
		values := map[int]uint64{4: rsp, 2: rsp + 8, 6: rsp + 8 + 304, 7: 14}
		for _, number := range wire.Registers {
			events = append(events, wire.MakeRegister(values[int(number)]))
		}
		return events
	}
	handled := func(name string, registers []wire.Event, interrupted, cfa uint64) []wire.Event {
		return slices.Concat(registers,
			[]wire.Event{wire.MakeCaller(wire.Handler, interrupted),
				wire.MakeHit(firstSite(p, name), 1, cfa)})
	}
	faulted := slices.Concat(registersAt(rootAt-16),
		[]wire.Event{wire.MakeFaulted(wire.MakeInterrupt(store))})
	atStore := handled("onfault", registersAt(rootAt-16), store, rootAt-frame)
	second := handled("on", beginning(rootAt-frame), onfault, rootAt-2*frame)
	third := handled("on", beginning(rootAt-2*frame), on, rootAt-3*frame)
	comes := func(cfa,
		at uint64) []wire.Event {
		return append(beginning(cfa), wire.MakeInterrupt(at))
	}
	const ran = "#handler, enter on, path, leave, "
	for name, c := range map[string]struct {
		events []wire.Event
		want   string
	}{
		"one": {slices.Concat(faulted, atStore), ""},
		"two": {slices.Concat(faulted, comes(rootAt-frame, onfault), second, atStore), ran},
		"three": {slices.Concat(faulted, comes(rootAt-frame, onfault), comes(rootAt-2*frame, on),
			third, second, atStore),
			ran + ran},
		"a fourth in between": {slices.Concat(faulted, comes(rootAt-frame, onfault),
			comes(rootAt-2*frame, on),
			third, comes(rootAt-2*frame, on), third, second, atStore), ran + ran + ran},
	} {
		events := slices.Concat(begun(p, "root", rootAt), c.events)
		want := "enter root, path, #cut, " + c.want + "#handler, enter onfault, path, #cut"
		if d := cmp.Diff(want, decoded(t, p, events...)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}
