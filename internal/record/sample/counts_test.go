package sample

import (
	"fmt"
	"testing"
	"time"

	"wpptrace/loader/target"
)

func TestAdd(t *testing.T) {
	var a, sum Counts
	a.Kernel, a.Unknown, a.Lost, a.CPUTime = 1, 2, 3, time.Second
	a.image(target.FileID{}, "program").add(0x10, 4)
	a.addUnplaced("[anon:v8]", "f", 5)
	a.addUnplaced("[anon:v8]", "", 6)
	for range 2 {
		sum.Add(a)
	}
	if sum.Total() != 2*a.Total() || a.Total() != 21 || sum.CPUTime != 2*time.Second {
		t.Errorf("%d and %d samples, %v", a.Total(), sum.Total(), sum.CPUTime)
	}
	if u := sum.JIT["[anon:v8]"]; u.Samples != 22 || u.Names["f"] != 10 {
		t.Errorf("%v", u)
	}
	by := Sum(sum.Images[target.FileID{}], func(offset uint64) bool { return offset == 0x10 })
	if by[true] != 8 || len(by) != 1 {
		t.Errorf("%v", by)
	}
}

// TestCountsAreBounded: whatever names a process gives its memory, and wherever it runs, its counts
// stay of a size, and none is lost.
func TestCountsAreBounded(t *testing.T) {
	var c Counts
	for i := range uint64(2 * maxMappings) {
		c.addUnplaced(fmt.Sprint(i), "", 1)
	}
	for i := range uint64(2 * maxNames) {
		c.addUnplaced("0", fmt.Sprint(i), 1)
	}
	image := c.image(target.FileID{}, "program")
	for i := range uint64(maxOffsets + 1000) {
		image.add(i, 1)
	}
	if n := c.Total(); n != 2*maxMappings+2*maxNames+maxOffsets+1000 {
		t.Errorf("%d samples", n)
	}
	if len(c.JIT) > maxMappings+1 || len(c.JIT["0"].Names) > maxNames ||
		len(image.Offsets) > maxOffsets {
		t.Errorf("%d mappings, %d names, %d offsets", len(c.JIT), len(c.JIT["0"].Names),
			len(image.Offsets))
	}
}

func TestPeriod(t *testing.T) {
	for _, c := range []struct {
		cost       time.Duration
		rate, cpus int
		want       time.Duration
	}{
		{time.Microsecond, 999, 2, time.Second / 999},
		{17 * time.Microsecond, 999, 2, 2 * time.Millisecond},
		{time.Microsecond, 999, 128, 6400 * time.Microsecond},
		{time.Microsecond, 100, 2, 10 * time.Millisecond},
	} {
		p := leastPeriod(c.cost, 0.01, c.rate, c.cpus)
		if p.Round(time.Microsecond) != c.want.Round(time.Microsecond) {
			t.Errorf("%+v: %v", c, p)
		}
	}
}
