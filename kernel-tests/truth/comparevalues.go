package truth

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A ValueReport counts instructions of the traced routines, by the least sure of what they wrote
// and accessed.
type ValueReport struct {
	Steps, Confirmed, Unconfirmed, Unknown int
	// Unlike are registers, and the accesses of instructions, that are not alike in two runs.
	Unlike int
	// Flags are instructions that use some, KnownFlags those of which all that they use are known;
	// Vectors are vector registers that were written, KnownVectors those that are known.
	Flags, KnownFlags, Vectors, KnownVectors int
	// ByPlace has the instructions of which something is unknown.
	ByPlace map[uint64]int
}

// Known is the share of instructions of which all is known, 0 to 1.
func (r ValueReport) Known() float64 {
	if r.Steps == 0 {
		return 1
	}
	return float64(r.Confirmed+r.Unconfirmed) / float64(r.Steps)
}

// CompareValues compares what the tracer says of values with a truth, for programs of one thread
// and without handlers. It demands the same instructions in the same order, in the traced
// routines, and of each that every value which is given is right, confirmed or not; that every
// register whose value changes is among those that are written; and that what is accessed is given,
// if only as unknown. A truth that was cut off is compared as far as it goes. The error shows the
// first difference with its neighbourhood.
func CompareValues(got []*ValueStream, want *Trace, routines Routines) (ValueReport, error) {
	report := ValueReport{ByPlace: map[uint64]int{}}
	if want.Cut && len(got) == 1 {
		n := min(len(got[0].Steps), len(routines.traced(want.Threads[0].Insns)))
		got = []*ValueStream{{TID: got[0].TID, Steps: got[0].Steps[:n]}}
	}
	var streams []*Stream
	for _, v := range got {
		streams = append(streams, v.Stream())
	}
	if err := Compare(streams, want, routines, Exact); err != nil {
		return report, err
	}
	if len(want.Threads) != 1 || len(got) > 1 {
		return report, errors.New("values of several threads cannot be compared")
	}
	for _, v := range got {
		c := comparison{got: v, thread: want.Threads[0], routines: routines, report: &report}
		if err := c.run(); err != nil {
			return report, err
		}
	}
	return report, nil
}

type comparison struct {
	got      *ValueStream
	thread   *Thread
	routines Routines
	report   *ValueReport
	replay   Replay
	wrong    map[uint64]int // how often, by link-time address
	first    map[uint64]error
	errs     []error // the first at each place
}

func (c *comparison) run() error {
	at := 0
	for i := range c.thread.Values {
		want := &c.thread.Values[i]
		c.replay.Before(want)
		if r, ok := c.routines.Find(want.PC); !ok || !r.Traced {
			c.replay.After(want)
			continue
		}
		if at == len(c.got.Steps) || c.got.Steps[at].PC != want.PC {
			return fmt.Errorf("step %d of the truth, %s, has no values in the record", i,
				c.routines.place(want.PC))
		}
		got := &c.got.Steps[at]
		err := c.flags(got, want)
		c.replay.After(want)
		if err = cmp.Or(err, c.step(got, want), c.vectors(got, want)); err != nil {
			c.note(fmt.Errorf("%w%s", err, c.neighbourhood(at, i)), want.PC)
		}
		c.count(got)
		at++
	}
	if len(c.wrong) > 0 {
		return c.differences()
	}
	if at != len(c.got.Steps) {
		return fmt.Errorf("%d steps in the record, %d in the truth", len(c.got.Steps), at)
	}
	return nil
}

// note keeps a difference, if it is the first at its place.
func (c *comparison) note(err error, pc uint64) {
	if c.wrong == nil {
		c.wrong, c.first = map[uint64]int{}, map[uint64]error{}
	}
	if c.wrong[pc]++; c.wrong[pc] == 1 {
		c.errs = append(c.errs, err)
		c.first[pc] = err
	}
}

// differences are the first at some places, and where there are more.
func (c *comparison) differences() error {
	const most = 2
	shown := c.errs[:min(most, len(c.errs))]
	places := slices.SortedFunc(maps.Keys(c.wrong), func(a, b uint64) int {
		return cmp.Or(cmp.Compare(c.wrong[b], c.wrong[a]), cmp.Compare(a, b))
	})
	var b strings.Builder
	for _, pc := range places[:min(20*most, len(places))] {
		what, _, _ := strings.Cut(c.first[pc].Error(), "\n")
		fmt.Fprintf(&b, "\n  %6d wrong at %s: %s", c.wrong[pc], c.routines.place(pc), what)
	}
	return fmt.Errorf("%w\n%d places differ:%s", errors.Join(shown...), len(places), &b)
}

func (c *comparison) count(got *ReportedStep) {
	c.report.Steps++
	switch got.Sure() {
	case Confirmed:
		c.report.Confirmed++
	case Unconfirmed:
		c.report.Unconfirmed++
	default:
		c.report.Unknown++
		c.report.ByPlace[got.PC]++
	}
}

// step compares one instruction, behind which the replay stands.
func (c *comparison) step(got *ReportedStep, want *Step) error {
	written := [16]bool{}
	for _, r := range got.Registers {
		written[r.Register] = true
		is := c.replay.Registers[r.Register]
		if r.Sureness == Unknown || r.Value == is {
			continue
		}
		if want.Unlike>>r.Register&1 == 1 {
			c.report.Unlike++
		} else {
			return fmt.Errorf("%s is %x%s, and was %x in the truth", generalNames[r.Register],
				r.Value, r.Sureness.suffix(), is)
		}
	}
	for _, w := range want.Written {
		if !written[w.Register] {
			return fmt.Errorf("%s became %x in the truth; the record does not have it written",
				generalNames[w.Register], w.Value)
		}
	}
	if want.UnlikeMemory {
		c.report.Unlike++
		return nil
	}
	if err := c.accesses(got, want.Reads, false); err != nil {
		return err
	}
	return c.accesses(got, want.Writes, true)
}

// flags compares the flags that an instruction uses, before which the replay stands.
func (c *comparison) flags(got *ReportedStep, want *Step) error {
	f := &got.Flags
	if want.FlagsUsed != 0 && f.Used != want.FlagsUsed&^alwaysSet {
		return fmt.Errorf("flags %x are used, and %x in the truth", f.Used,
			want.FlagsUsed&^alwaysSet)
	}
	if f.Used == 0 {
		return nil
	}
	c.report.Flags++
	if f.Sureness == Unknown {
		return nil
	}
	c.report.KnownFlags++
	is := uint32(c.replay.Registers[Flags]) & f.Used
	switch {
	case f.Value == is:
	case want.UnlikeFlags&f.Used != 0:
		c.report.Unlike++
	default:
		return fmt.Errorf("of flags %x there are %x%s, and were %x in the truth", f.Used, f.Value,
			f.suffix(), is)
	}
	return nil
}

// vectors compares the vector registers that an instruction has written and names.
func (c *comparison) vectors(got *ReportedStep, want *Step) error {
	for _, v := range got.Vectors {
		c.report.Vectors++
		if v.Sureness == Unknown {
			continue
		}
		c.report.KnownVectors++
		for _, is := range want.Vectors {
			switch {
			case is.Register != v.Number || is.Bytes == v.Bytes:
			case want.UnlikeVector:
				c.report.Unlike++
			default:
				return fmt.Errorf("xmm%d is %x%s, and was %x in the truth", v.Number, v.Bytes,
					v.suffix(), is.Bytes)
			}
		}
	}
	return nil
}

func (s Sureness) suffix() string {
	if s == Unconfirmed {
		return "?"
	}
	return ""
}

// accesses compares what an instruction reads, or writes, byte by byte: string instructions access
// in pieces.
func (c *comparison) accesses(got *ReportedStep, want []MemoryValue, write bool) error {
	way := "read"
	if write {
		way = "written"
	}
	total := 0
	for _, m := range want {
		total += len(m.Bytes)
	}
	given, open := 0, false
	for _, a := range got.Accesses {
		if a.Write != write {
			continue
		}
		given += len(a.Bytes)
		open = open || len(a.Bytes) == 0
		if !a.Placed {
			continue
		}
		is := find(want, a.Addr, len(a.Bytes))
		if is == nil {
			return fmt.Errorf("%d bytes at %x are %s, which the truth has not", len(a.Bytes),
				a.Addr, way)
		}
		if a.Sureness != Unknown && !bytes.Equal(is, a.Bytes) {
			return fmt.Errorf("%x%s is %s at %x, and %x was in the truth", a.Bytes,
				a.Sureness.suffix(), way, a.Addr, is)
		}
	}
	if given != total && !(open && given < total) {
		return fmt.Errorf("%d bytes are %s, and %d were in the truth", given, way, total)
	}
	return nil
}

// find is the bytes of an access that lies in one of these.
func find(list []MemoryValue, addr uint64, size int) []byte {
	for _, m := range list {
		at, length := addr-m.Addr, uint64(len(m.Bytes))
		if at <= length && uint64(size) <= length-at {
			return m.Bytes[at : at+uint64(size)]
		}
	}
	return nil
}

// neighbourhood shows the steps of the record around one, and what the truth has there.
func (c *comparison) neighbourhood(at, i int) string {
	const before = 8
	var b strings.Builder
	b.WriteString("\n  record:\n")
	for k := max(0, at-before); k <= min(at+1, len(c.got.Steps)-1); k++ {
		arrow := "     "
		if k == at {
			arrow = "   =>"
		}
		s := &c.got.Steps[k]
		fmt.Fprintf(&b, "%s %s%s\n", arrow, c.routines.place(s.PC), s)
	}
	w := &c.thread.Values[i]
	fmt.Fprintf(&b, "  truth:\n   => %s%s", c.routines.place(w.PC), w)
	return b.String()
}

// String is for test failures.
func (s *ReportedStep) String() string {
	var b strings.Builder
	for _, r := range s.Registers {
		fmt.Fprintf(&b, " %s=%x/%d", generalNames[r.Register], r.Value, r.Sureness)
	}
	for _, a := range s.Accesses {
		way := "r"
		if a.Write {
			way = "w"
		}
		fmt.Fprintf(&b, " %s[%x:%d]=%x/%d", way, a.Addr, len(a.Bytes), a.Bytes, a.Sureness)
	}
	return b.String()
}

// String is for test failures.
func (s *Step) String() string {
	var b strings.Builder
	for _, r := range s.Written {
		fmt.Fprintf(&b, " %s=%x", generalNames[r.Register], r.Value)
	}
	for _, m := range s.Reads {
		fmt.Fprintf(&b, " r[%x:%d]=%x", m.Addr, len(m.Bytes), m.Bytes)
	}
	for _, m := range s.Writes {
		fmt.Fprintf(&b, " w[%x:%d]=%x", m.Addr, len(m.Bytes), m.Bytes)
	}
	return b.String()
}
