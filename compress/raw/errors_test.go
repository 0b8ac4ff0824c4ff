package raw

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"wpptrace/compress/ops"
)

const head = magic + "\x02"

// Whatever cannot be meant gives an error of one line that says where and what.
func TestFaults(t *testing.T) {
	// Routine 1 has path 0 from entry to return, path 1 from entry to call, path 2 from loop to
	// call.
	const begin = head + "\x0c\x01\x00\x02\x0c\x01\x01\x01\x0c\x01\x02\x11\x01\x00"
	for _, c := range []struct{ name, trace, want string }{
		{"empty", "", "raw trace at byte 0: this is no raw trace: see docs/raw-trace.md"},
		{"text", "hello, world", "raw trace at byte 0: this is no raw trace: see " +
			"docs/raw-trace.md"},
		{"version", magic + "\x03", "raw trace at byte 0: version 3 of the format, where this " +
			"wpptrace reads versions up to 2"},
		{"zeros", head + "\x00\x00", "raw trace at byte 9: unknown opcode 0x00"},
		{"opcode", begin + "\x0f", "raw trace at byte 23: unknown opcode 0x0f"},
		{"no thread", head + "\x02\x01", "raw trace at byte 9: no EnterThread before"},
		{"endless varint", head + "\x01" + strings.Repeat("\xff", 100),
			"raw trace at byte 9: an operand is above 64 bits"},
		{"65 bits", head + "\x0c\x01" + strings.Repeat("\xff", 9) + "\x02\x00",
			"raw trace at byte 9: an operand is above 64 bits"},
		{"thread number", head + "\x01\x80\x80\x80\x80\x08",
			"raw trace at byte 9: thread number 2147483648 is above 2147483647"},
		{"thread id", head + "\x0a\x00\x80\x80\x80\x80\x08\x00\x00",
			"raw trace at byte 9: thread id number 2147483648 is above 2147483647"},
		{"routine number", begin + "\x02\x80\x80\x80\x80\x08",
			"raw trace at byte 23: routine number 2147483648 is above 2147483647"},
		{"name", head + "\x0b\x01\x00\xff\xff\xff\x7f",
			"raw trace at byte 9: a name of 268435455 bytes, where 1048576 is the most"},
		{"thread twice", head + "\x01\x05\x0a\x05\x05\x00\x00",
			"raw trace at byte 11: thread 5 has been defined or entered before"},
		{"routine twice", head + "\x0b\x05\x00\x01a\x0b\x05\x00\x01a",
			"raw trace at byte 14: routine 5 has been defined or used before"},
		{"routine after use", begin + "\x0b\x01\x00\x01a",
			"raw trace at byte 23: routine 1 has been defined or used before"},
		{"path twice", begin + "\x0c\x01\x02\x11", "raw trace at byte 23: path 2 of " +
			"\"routine_1\" has been defined before"},
		{"kinds", head + "\x0c\x01\x02\x70", "raw trace at byte 9: path 2 of \"routine_1\" " +
			"starts and ends at unknown kinds 0x70"},
		{"undefined path", begin + "\x02\x01\x04\x09",
			"raw trace at byte 25: path 9 of \"routine_1\" has not been defined"},
		{"no activation", begin + "\x04\x00", "raw trace at byte 23: path 0, but no activation " +
			"is open"},
		{"no activation left", begin + "\x02\x01\x04\x00\x03\x04\x00",
			"raw trace at byte 28: path 0, but no activation is open"},
		{"leave nothing", begin + "\x03", "raw trace at byte 23: LeaveRoutine, but no path has " +
			"ended by a return or a tail jump just before, nor is there an Unwind"},
		{"leave after call", begin + "\x02\x01\x04\x01\x03",
			"raw trace at byte 27: LeaveRoutine, but no path has ended by a return or a tail " +
				"jump just before, nor is there an Unwind"},
		{"no leave", begin + "\x02\x01\x04\x00\x02\x01", "raw trace at byte 27: 1 LeaveRoutine " +
			"are missing before it, after a return, a tail jump or Unwind"},
		{"no leave at the end", begin + "\x02\x01\x04\x00\x0d",
			"raw trace at byte 27: 1 LeaveRoutine are missing before it, after a return, a tail " +
				"jump or Unwind"},
		{"entry twice", begin + "\x02\x01\x04\x01\x04\x01",
			"raw trace at byte 27: path 1 of \"routine_1\" starts at the entry, but is not the " +
				"first of its activation"},
		{"no entry", begin + "\x02\x01\x04\x02", "raw trace at byte 25: path 2 of \"routine_1\" " +
			"is the first of its activation, but does not start at the entry, and nothing is " +
			"missing before"},
		{"many times to a call", begin + "\x02\x01\x04\x01\x0e\x02\x02",
			"raw trace at byte 27: path 2 of \"routine_1\" 2 times: from 1 to 1099511627776 are " +
				"possible, if it runs from a back edge's target to a back edge"},
		{"too many times", head +
			"\x0c\x01\x01\x01\x0c\x01\x03\x10\x01\x00\x02\x01\x04\x01\x0e\x03\x81\x80\x80\x80\x80\x20",
			"raw trace at byte 23: path 3 of \"routine_1\" 1099511627777 times: from 1 to " +
				"1099511627776 are possible, if it runs from a back edge's target to a back edge"},
		{"unwind", begin + "\x02\x01\x04\x01\x07\x02",
			"raw trace at byte 27: operation Unwind of 2 activations, where 1 are open"},
		{"unwind nothing", begin + "\x02\x01\x07\x01\x03",
			"raw trace at byte 27: LeaveRoutine of an activation of \"routine_1\" without " +
				"a path"},
		{"name of several lines", head + "\x0b\x01\x00\x03a\nb\x01\x00\x02\x01\x04\x00",
			"raw trace at byte 20: path 0 of \"a\\nb\" has not been defined"},
		{"behind the end", begin + "\x0d\x00", "raw trace at byte 23: something stands behind " +
			"EndTrace"},
		{"cut off", begin, "raw trace ends at byte 23, without EndTrace: the trace is cut off"},
		{"cut off in a name", head + "\x0b\x01\x00\x05abc",
			"raw trace ends at byte 16, without EndTrace: the trace is cut off"},
	} {
		if _, _, err := list([]byte(c.trace)); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}

// What a hole in the thread excuses.
func TestHoles(t *testing.T) {
	// path 2 from loop to return, path 3 from the middle to the return
	const begin = head + "\x0c\x01\x02\x12\x0c\x01\x03\x52\x01\x00"
	for name, trace := range map[string]string{
		"gap":     "\x05\x07\x02\x01\x04\x02\x03",
		"resume":  "\x06\x02\x02\x01\x04\x02\x03",
		"partial": "\x02\x01\x04\x03\x03\x02\x01\x04\x02\x03",
		"unwind":  "\x06\x02\x02\x01\x07\x02\x03",
	} {
		if _, _, err := list([]byte(begin + trace + "\x0d")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A trace of the first version is read.
func TestFirstVersion(t *testing.T) {
	lines, _ := example(t)
	_, want, _ := list(slices.Concat(lines...))
	_, got, err := list(append([]byte(magic+"\x01"), slices.Concat(lines[1:]...)...))
	if err != nil || !slices.Equal(*got.read[0], *want.read[0]) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}

// A trace that is cut off anywhere is read up to there.
func TestCutOff(t *testing.T) {
	lines, _ := example(t)
	whole := slices.Concat(lines...)
	_, all, err := list(whole)
	if err != nil {
		t.Fatal(err)
	}
	longest := 0
	for n := len(head); n < len(whole); n++ {
		_, l, err := list(whole[:n])
		if !errors.Is(err, ErrTruncated) {
			t.Fatalf("%d bytes: %v", n, err)
		}
		if len(l.read) == 0 {
			continue
		}
		k := len(*l.read[0])
		if k < longest || !slices.Equal(*l.read[0], (*all.read[0])[:k]) {
			t.Errorf("%d bytes: %q", n, *l.read[0])
		}
		longest = k
	}
	if longest != len(*all.read[0]) {
		t.Errorf("%d operations before EndTrace, %d after", longest, len(*all.read[0]))
	}
}

var errBroken = errors.New("broken")

func TestErrorOfSource(t *testing.T) {
	lines, _ := example(t)
	for n, want := range map[int]string{3: "read raw trace at byte 3: broken",
		30: "read raw trace at byte 30: broken"} {
		source := io.MultiReader(bytes.NewReader(slices.Concat(lines...)[:n]),
			iotest.ErrReader(errBroken))
		err := NewReader(source).Read((&listing{}).begin)
		if !errors.Is(err, errBroken) || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestTooDeep(t *testing.T) {
	r := NewReader(strings.NewReader(head + "\x01\x00\x02\x01"))
	r.open = mostOpen
	if err := r.Read((&listing{}).begin); !errors.Is(err, errTooDeep) {
		t.Errorf("reader: %v", err)
	}
	w := NewWriter(io.Discard, describe)
	w.open = mostOpen
	w.Thread(Thread{}).NewPath(0, 0, 1)
	if err := w.Close(); !errors.Is(err, errTooDeep) {
		t.Errorf("writer: %v", err)
	}
}

// A writer writes nothing that no reader takes.
func TestWriterRefusesTimes(t *testing.T) {
	loop := func(int, uint64) (ops.Start, ops.End, error) { return ops.StartLoop, ops.EndLoop, nil }
	for _, c := range []struct {
		describe func(int, uint64) (ops.Start, ops.End, error)
		times    uint64
		refused  bool
	}{{loop, 1, false}, {loop, ops.MostTimes, false}, {loop, 0, true},
		{loop, ops.MostTimes + 1, true}, {describe, 1, false}, {describe, 3, true}} {
		w := NewWriter(io.Discard, c.describe)
		w.Thread(Thread{}).NewPath(0, 0, c.times)
		if err := w.Close(); (err != nil) != c.refused {
			t.Errorf("%d times: %v", c.times, err)
		}
	}
}

// A brokenWriter takes so many bytes.
type brokenWriter int

func (w *brokenWriter) Write(p []byte) (int, error) {
	if int(*w) < len(p) {
		return 0, errBroken
	}
	*w -= brokenWriter(len(p))
	return len(p), nil
}

// The first error is kept, and nothing is written after it.
func TestWriterFails(t *testing.T) {
	full := brokenWriter(1 << 16)
	w := NewWriter(&full, describe)
	thread := w.Thread(Thread{})
	for range 1 << 17 {
		thread.Mark(ops.Gap, 1)
	}
	if err := w.Close(); !errors.Is(err, errBroken) {
		t.Errorf("%v", err)
	}
	var out bytes.Buffer
	w = NewWriter(&out, func(int, uint64) (ops.Start, ops.End, error) { return 0, 0, errBroken })
	w.Thread(Thread{}).NewPath(0, 0, 1)
	if err := w.Close(); !errors.Is(err, errBroken) || bytes.HasSuffix(out.Bytes(),
		[]byte{byte(endTrace)}) {
		t.Errorf("%v, % x", err, out.Bytes())
	}
}

// FuzzReader reads anything. What is accepted can be written again, and is the same then.
func FuzzReader(f *testing.F) {
	lines, _ := example(f)
	whole := slices.Concat(lines...)
	f.Add(whole)
	f.Add(whole[:50])
	f.Add([]byte(head + "\x01\x00\x06\x03\x0c\x01\x03\x52\x02\x01\x04\x03\x03\x05\x00\x07\x01\x0d"))
	f.Fuzz(func(t *testing.T, trace []byte) {
		r, l, err := list(trace)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("an error of several lines: %q", err)
			}
			return
		}
		var out bytes.Buffer
		w := NewWriter(&out, func(routine int, path uint64) (ops.Start, ops.End, error) {
			start, end := r.Path(routine, path)
			return start, end, nil
		})
		for i, routine := range r.Routines() {
			w.DefineRoutine(i, routine)
		}
		if err := NewReader(bytes.NewReader(trace)).Read(func(t Thread) ops.Sink {
			return w.Thread(t)
		}); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		_, again, err := list(out.Bytes())
		if err != nil {
			t.Fatalf("% x: %v", out.Bytes(), err)
		}
		for i := range l.read {
			if got, want := pathsAndMarks(*again.read[i]),
				pathsAndMarks(*l.read[i]); !slices.Equal(got, want) ||
				again.threads[i] != l.threads[i] {
				t.Fatalf("thread %+v: %q, was %+v: %q", again.threads[i], got, l.threads[i], want)
			}
		}
	})
}
