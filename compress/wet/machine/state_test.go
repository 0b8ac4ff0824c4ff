package machine

import (
	"bytes"
	"testing"
)

// TestState: a state is read back as it was, and none that is cut off.
func TestState(t *testing.T) {
	m := New()
	m.SetGeneral(RBX, 1<<63|5, Confirmed)
	m.SetGeneral(FS, 7, Unconfirmed)
	m.SetFlags(ZF|CF, Confirmed)
	m.SetVector(3, [32]byte{1, 2, 3}, Unconfirmed)
	m.SetMXCSR(0x1f80, Confirmed)
	state := m.AppendState(nil)
	got, rest, err := ParseState(append(state, 9))
	if err != nil || len(rest) != 1 {
		t.Fatalf("%d bytes are left, %v", len(rest), err)
	}
	if !bytes.Equal(got.AppendState(nil), state) {
		t.Error("it is another one")
	}
	if v, k := got.General(RBX); v != 1<<63|5 || k != Confirmed {
		t.Errorf("rbx is %x, %d", v, k)
	}
	for n := range state {
		if _, _, err := ParseState(state[:n]); err == nil {
			t.Errorf("%d bytes of it are read", n)
		}
	}
	if _, _, err := ParseState(append([]byte{0xff, 0}, state[1:]...)); err == nil {
		t.Error("what is known of registers may be anything")
	}
}
