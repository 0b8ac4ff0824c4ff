package main

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wpptrace/compress/sequitur"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/store"
)

// writeRepetitive writes a snapshot of loops in loops, of marks only, in which there is something
// to gain.
func writeRepetitive(t *testing.T) (path string) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	g := sequitur.New()
	for range 3000 {
		for range random.IntN(10) {
			g.AppendAll([]uint32{10, 11, random.Uint32N(4), 12, 13})
		}
		g.Append(20 + random.Uint32N(20))
	}
	s := &wpp.Snapshot{Symbols: make([]wpp.Symbol, 40),
		Threads: []wpp.Thread{{TID: 1, Grammar: wpp.FromSequitur(g)}}}
	for i := range s.Symbols {
		s.Symbols[i] = wpp.Symbol{IsMark: true, N: uint64(i)}
	}
	path = filepath.Join(t.TempDir(), "x.wpp")
	if err := store.WriteFile(path, s); err != nil {
		t.Fatal(err)
	}
	return path
}

func sizeOf(t *testing.T, path string) int64 {
	t.Helper()
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return st.Size()
}

// dumped is all that a snapshot says ran.
func dumped(t *testing.T, path string) string {
	t.Helper()
	out, errs, status := wpptrace("dump", path)
	if status != 0 {
		t.Fatal(errs)
	}
	return out
}

func TestCompact(t *testing.T) {
	path := writeRepetitive(t)
	before, want := sizeOf(t, path), dumped(t, path)
	other := filepath.Join(t.TempDir(), "small.wpp")
	for _, c := range []struct {
		args   []string
		output string
	}{
		{[]string{"compact", "-o", other, path}, other},
		{[]string{"compact", path}, path},
	} {
		out, errs, status := wpptrace(c.args...)
		if status != 0 || errs != "" || !strings.HasPrefix(out, c.output+": ") ||
			strings.Count(out, "\n") != 1 {
			t.Fatalf("%q: %d, %q, %q", c.args, status, out, errs)
		}
		if after := sizeOf(t, c.output); after >= before {
			t.Errorf("%q: %d bytes, were %d", c.args, after, before)
		}
		if dumped(t, c.output) != want {
			t.Errorf("%q: another dump", c.args)
		}
	}
	if got := sizeOf(t, path+".old"); got != before {
		t.Errorf("the old one has %d bytes, had %d", got, before)
	}
}

func TestCompactFails(t *testing.T) {
	path := writeRepetitive(t)
	device := filepath.Join(t.TempDir(), "device")
	must(t, os.Symlink(os.DevNull, device))
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(path, link))
	for _, c := range []struct {
		args   []string
		status int
		text   string
	}{
		{[]string{"compact"}, exitUsage, "a snapshot expected, not 0 arguments"},
		{[]string{"compact", path + "x"}, exitError, "name a file that wpptrace has recorded"},
		{[]string{"compact", "-o", filepath.Join(path, "x"), path}, exitError, "not a directory"},
		{[]string{"compact", "-o", device, path}, exitError, "not a regular file"},
		{[]string{"compact", "-o", link, path}, exitError,
			"it is a link, which is not written through: name what it leads to with -o"},
	} {
		if out, errs, status := wpptrace(c.args...); status != c.status || out != "" ||
			!strings.Contains(errs, c.text) {
			t.Errorf("%q: %d, %q, %q", c.args, status, out, errs)
		}
	}
}

// Sections that this wpptrace does not know are kept by compact, but for those that refer to the
// grammars it has changed, and commands that read say that they skip them.
func TestSectionsOfANewerVersion(t *testing.T) {
	path := writeRepetitive(t)
	s, err := store.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const kept, ofRules = wpp.SectionKind(1 << 20), wpp.SectionKind(1<<20+1) | wpp.OfRules
	s.Sections = []*wpp.Section{wpp.NewSection(kept, []byte("kept")),
		wpp.NewSection(ofRules, []byte("left out"))}
	if err := store.WriteFile(path, s); err != nil {
		t.Fatal(err)
	}
	const note = ": sections of kind 1048576, 1048577 are skipped: a newer wpptrace reads them\n"
	if _, errs, status := wpptrace("stat", path); status != 0 || errs != "wpptrace: "+path+note {
		t.Errorf("stat: %d, %q", status, errs)
	}
	const leftOut = ": sections of kind 1048577 are left out: they refer to grammars that are " +
		"others now\n"
	if _, errs, status := wpptrace("compact", path); status != 0 ||
		errs != "wpptrace: "+path+leftOut {
		t.Errorf("compact: %d, %q", status, errs)
	}
	if s, err = store.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	if len(s.Sections) != 1 {
		t.Fatalf("%d sections", len(s.Sections))
	}
	if data, err := s.Sections[0].Data(); err != nil || string(data) != "kept" {
		t.Errorf("kept: %q, %v", data, err)
	}
}
