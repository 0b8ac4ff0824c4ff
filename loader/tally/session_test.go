package tally

import (
	"os"
	"slices"
	"testing"

	"wpptrace/loader/guard"
	"wpptrace/loader/image"
	"wpptrace/loader/target"
)

// TestMain lets the test binary, started again, be a guard.
func TestMain(m *testing.M) {
	guard.Main()
	os.Exit(m.Run())
}

// countIn runs the program with two arguments, and counts in such a room.
func countIn(t *testing.T, room room, program string, im *image.Image, tables *Tables) *Counts {
	t.Helper()
	c, err := target.Start([]string{program, "a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Process.Close()
	exe, err := c.Process.Executable()
	if err != nil {
		t.Fatal(err)
	}
	defer exe.Close()
	s, err := loadInto(room, c.Process, im, exe, tables)
	if err != nil {
		c.Kill()
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Attach(); err != nil {
		c.Kill()
		t.Fatal(err)
	}
	if err := s.Enable(true); err != nil {
		c.Kill()
		t.Fatal(err)
	}
	c.Release()
	<-c.Done()
	counts, err := s.Read()
	if err != nil {
		t.Fatal(err)
	}
	return counts
}

// TestRoom has all counters in an array, some or all in a hash map, and one that is too small for
// those that count: what there is no room for is counted as such.
func TestRoom(t *testing.T) {
	program, im, list := machines(t)
	tables, err := Pack(list)
	if err != nil {
		t.Fatal(err)
	}
	want := countIn(t, enough, program, im, tables)
	all, kept := uint64(0), uint64(0)
	for _, n := range want.Counters {
		all += n
	}
	if all < 10 || want.Unknown+want.Full+want.NoThread+want.Unread+want.Amid > 0 {
		t.Fatalf("%+v", want)
	}
	for _, room := range []room{{0, tables.Keys}, {5, tables.Keys}} {
		got := countIn(t, room, program, im, tables)
		if !slices.Equal(got.Counters, want.Counters) ||
			got.Full > 0 {
			t.Errorf("in %+v: %+v, not %+v", room, got, want)
		}
	}
	got := countIn(t, room{0, 2}, program, im, tables)
	for i, n := range got.Counters {
		kept += n
		if n > want.Counters[i] {
			t.Errorf("counter %d: %d, not %d", i, n, want.Counters[i])
		}
	}
	if got.Full == 0 || kept+got.Full != all {
		t.Errorf("%d counted and %d not, of %d", kept, got.Full, all)
	}
}
