package testenv

import (
	"errors"
	"runtime"
	"testing"
)

// An outcome stands in for a test, and notes how it ends.
type outcome struct {
	testing.TB
	how string
}

func (o *outcome) Helper()      {}
func (o *outcome) Skip(...any)  { o.how = "skipped" }
func (o *outcome) Fatal(...any) { o.how = "failed" }

func TestWithoutAProgram(t *testing.T) {
	for _, c := range []struct {
		name         string
		run          func(t testing.TB)
		want, wantCI string
	}{
		{"Missing", func(t testing.TB) { Missing(t, errors.New("not installed")) }, "skipped",
			"failed"},
		{"Have not", func(t testing.TB) { Have(t, "/no/such/program") }, "", "failed"},
		{"Have", func(t testing.TB) { Have(t, "/proc/self/exe") }, "", ""},
	} {
		for ci, want := range map[string]string{"": c.want, "true": c.wantCI} {
			t.Setenv("CI", ci)
			var o outcome
			c.run(&o)
			if o.how != want {
				t.Errorf("%s with CI=%q: %q, want %q", c.name, ci, o.how, want)
			}
		}
	}
}

func TestHeapIsWithoutWhatHasFinalizers(t *testing.T) {
	const large = 1 << 20
	type object struct{ bytes [large]byte }
	before := Heap()
	var kept *object
	for range 16 {
		kept = new(object)
		runtime.SetFinalizer(kept, func(o *object) { o.bytes[0]++ })
	}
	if grown := Heap() - before; grown < large*3/4 || grown > large*5/4 {
		t.Errorf("one object of %d bytes is kept, and %d are in use", large, grown)
	}
	runtime.KeepAlive(kept)
}
