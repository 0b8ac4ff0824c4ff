package truth

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// A ValueReport counts instructions of the traced routines, by the least sure of what they wrote
// and accessed.
type ValueReport struct {
	Steps, Confirmed, Unconfirmed, Unknown int
	// Unlike are values of a run's own stack protector, which the kernel draws anew.
	Unlike int
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
// if only as unknown. The error shows the first difference with its neighbourhood.
func CompareValues(got []*ValueStream, want *Trace, routines Routines) (ValueReport, error) {
	report := ValueReport{ByPlace: map[uint64]int{}}
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
	guard    [2]uint64 // what the stack protector has: of the truth, and of the record
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
		guard := c.replay.Registers[FSBase] + stackGuard
		c.replay.After(want)
		if err := c.step(got, want, guard); err != nil {
			return fmt.Errorf("%w%s", err, c.neighbourhood(at, i))
		}
		c.count(got)
		at++
	}
	if at != len(c.got.Steps) {
		return fmt.Errorf("%d steps in the record, %d in the truth", len(c.got.Steps), at)
	}
	return nil
}

// stackGuard is where the C library has what the stack protector compares, from the base of fs on.
const stackGuard = 0x28

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
func (c *comparison) step(got *ReportedStep, want *Step, guard uint64) error {
	written := [16]bool{}
	for _, a := range got.Accesses {
		if a.Placed && a.Addr == guard && len(a.Bytes) == 8 && a.Sureness != Unknown {
			for _, m := range want.Reads {
				if m.Addr == guard && len(m.Bytes) == 8 {
					c.guard = [2]uint64{number64(m.Bytes), number64(a.Bytes)}
				}
			}
		}
	}
	for _, r := range got.Registers {
		written[r.Register] = true
		is := c.replay.Registers[r.Register]
		if r.Sureness != Unknown && r.Value != is && !c.isGuard(is, r.Value) {
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
	if err := c.accesses(got, want.Reads, false); err != nil {
		return err
	}
	return c.accesses(got, want.Writes, true)
}

func number64(b []byte) (v uint64) {
	for i := range 8 {
		v |= uint64(b[i]) << (8 * i)
	}
	return v
}

// isGuard says whether a value is what the stack protector has in either run.
func (c *comparison) isGuard(truth, record uint64) bool {
	if c.guard[0] == 0 || truth != c.guard[0] || record != c.guard[1] {
		return false
	}
	c.report.Unlike++
	return true
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
		same := bytes.Equal(is, a.Bytes) ||
			len(is) == 8 && c.isGuard(number64(is), number64(a.Bytes))
		if a.Sureness != Unknown && !same {
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
