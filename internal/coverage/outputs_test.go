package coverage

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wpptrace/compress/wpp/covered"
)

// What could not be written is refused before anything is observed; a check leaves no file.
func TestOutputsAreChecked(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		o     Outputs
		fails bool
	}{
		{Outputs{}, false},
		{Outputs{LCOV: filepath.Join(dir, "x.info"), Snapshot: filepath.Join(dir, "x.wpp")}, false},
		{Outputs{LCOV: os.DevNull}, false},
		{Outputs{LCOV: dir}, true},
		{Outputs{LCOV: filepath.Join(dir, "nodir", "x.info")}, true},
		{Outputs{Snapshot: filepath.Join(dir, "nodir", "x.wpp")}, true},
	} {
		if err := c.o.Check(); (err != nil) != c.fails {
			t.Errorf("%+v: %v", c.o, err)
		}
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
		t.Errorf("left: %v, %v", list, err)
	}
}

// A file for lcov without a line is no surprise later on. What is there is kept if it is checked.
func TestEmptyLCOVIsSaid(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.info")
	if err := os.WriteFile(file, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := Outputs{LCOV: file}
	if err := o.Check(); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "before" {
		t.Errorf("%q is there after a check: %v", b, err)
	}
	c := &covered.Coverage{Images: []covered.Image{{Name: "stripped"}}}
	var said, out strings.Builder
	if err := o.Write(&out, c, Origin{}, func(s string) { said.WriteString(s) }); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said.String(), "build with -g") || out.Len() == 0 {
		t.Errorf("said %q, printed %q", said.String(), out.String())
	}
}

// Debug information and symbols may name anything: no line is broken, and no terminal moved.
func TestHostileNames(t *testing.T) {
	const name = "a\nend_of_record\x1b[31m"
	m := covered.Image{Name: name, Files: []string{name},
		Routines: []covered.Routine{{Name: name, Symbol: name, Place: covered.Line{Line: 1}}},
		Blocks:   []covered.Block{{Ran: covered.Run, Lines: []covered.Line{{Line: 1}}}}}
	bare := m
	bare.Blocks = []covered.Block{{Ran: covered.Run}}
	for _, m := range []covered.Image{m, bare} {
		c := &covered.Coverage{Images: []covered.Image{m, m}}
		for what, write := range map[string]func(io.Writer, *covered.Coverage) error{
			"table": WriteTable, "tracefile": WriteLCOV} {
			var b strings.Builder
			if err := write(&b, c); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(b.String(), name) || strings.Contains(b.String(), "\x1b") {
				t.Errorf("the %s is %q", what, b.String())
			}
		}
	}
}

// Where a file cannot be written, the error says by which flag another one is named.
func TestOtherFileIsNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "missing", "x")
	if _, err := OpenLog(file); err == nil || !strings.HasSuffix(err.Error(), "with --log") {
		t.Errorf("log: %v", err)
	}
	if err := (Outputs{LCOV: file}).Check(); err == nil ||
		!strings.HasSuffix(err.Error(), "with --lcov") {
		t.Errorf("lcov: %v", err)
	}
}
