package format

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/wpptest"
)

// Files with inlined calls stay readable for ever, as those without.
func TestReadsInlinedCalls(t *testing.T) {
	path := filepath.Join("testdata", "version3-inlined.wpp")
	got := readFile(t, path)
	if d := wpptest.Difference(wpptest.Inlined(), got); d != "" {
		t.Error(d)
	}
}

// A snapshot of a program in which nothing is inlined takes no more than it did before that was
// kept.
func TestNothingInlinedTakesNothing(t *testing.T) {
	m := encodeProgram(wpptest.Small())
	if m.BlockSpans != nil || m.CallName != nil {
		t.Errorf("%d and %d elements", len(m.BlockSpans), len(m.CallName))
	}
	old, err := os.ReadFile(versionFile(version))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(encoded(t, wpptest.Small())); n != len(old) {
		t.Errorf("%d bytes, not %d", n, len(old))
	}
}

// Columns that disagree are refused.
func TestInlinedColumns(t *testing.T) {
	for name, change := range map[string]func(m *ProgramSection){
		"files of calls":    func(m *ProgramSection) { m.CallFile = m.CallFile[1:] },
		"lines of calls":    func(m *ProgramSection) { m.CallLine = m.CallLine[1:] },
		"what calls are in": func(m *ProgramSection) { m.CallIn = m.CallIn[1:] },
		"blocks":            func(m *ProgramSection) { m.BlockSpans = m.BlockSpans[1:] },
		"no blocks":         func(m *ProgramSection) { m.BlockSpans = nil },
		"fewer spans":       func(m *ProgramSection) { m.BlockSpans[0] = 1 },
		"more spans":        func(m *ProgramSection) { m.BlockSpans[2] = 1 << 31 },
		"instructions": func(m *ProgramSection) {
			m.SpanInstructions = m.SpanInstructions[1:]
		},
		"calls":          func(m *ProgramSection) { m.SpanCall = m.SpanCall[1:] },
		"files":          func(m *ProgramSection) { m.SpanFile = m.SpanFile[1:] },
		"first lines":    func(m *ProgramSection) { m.SpanLine = m.SpanLine[1:] },
		"last lines":     func(m *ProgramSection) { m.SpanLast = m.SpanLast[1:] },
		"names of calls": func(m *ProgramSection) { m.CallName[0] = 1000 },
	} {
		m := encodeProgram(wpptest.Inlined())
		change(m)
		if err := decodeProgram(&wpp.Snapshot{}, m); err == nil || !strings.Contains(err.Error(),
			"columns disagree") && name != "names of calls" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRoundTripOfInlinedCalls(t *testing.T) {
	got, err := Read(bytes.NewReader(encoded(t, wpptest.Inlined())))
	if err != nil {
		t.Fatal(err)
	}
	if d := wpptest.Difference(wpptest.Inlined(), got); d != "" {
		t.Error(d)
	}
}
