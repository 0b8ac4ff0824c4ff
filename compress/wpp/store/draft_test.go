package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/format"
	"wpptrace/compress/wpp/wpptest"
)

// A draft that cannot be written any more leaves what was recorded before, and says where.
func TestDraftOnAFullDisk(t *testing.T) {
	want := wpptest.Repetitive()
	for fail := 1; ; fail++ {
		path := filepath.Join(t.TempDir(), "x.wpp")
		f := &failingFiles{fail: fail}
		d := newDraft(f, path)
		spilled := 0
		var err error
		for i := 0; i < 2 && err == nil; i++ {
			tables := *want
			if i > 0 {
				tables.Symbols = nil
			}
			if _, err = d.Spill(&tables, 0, want.Threads[0]); err == nil {
				spilled++
			}
		}
		if f.failed == "" && d.Discard() == nil {
			if names := namesIn(t, filepath.Dir(path)); len(names) > 0 {
				t.Errorf("left after Discard: %v", names)
			}
			return
		}
		if err == nil { // it was discarding that failed
			continue
		}
		if !errors.Is(err, errStep) {
			t.Errorf("step %d, %s: %v", fail, f.failed, err)
		}
		names := namesIn(t, filepath.Dir(path))
		if spilled == 0 {
			continue
		}
		if len(names) != 1 || !strings.Contains(err.Error(), names[0]) {
			t.Fatalf("step %d, %s: left %v, error %v", fail, f.failed, names, err)
		}
		got, err := ReadFile(filepath.Join(filepath.Dir(path), names[0]))
		if !errors.Is(err, format.ErrTruncated) || got == nil ||
			got.Threads[0].Grammar.Length(0) < want.Threads[0].Grammar.Length(0) {
			t.Errorf("step %d, %s: read %v", fail, f.failed, err)
		}
	}
}

func ExampleDraft() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	s := wpptest.Small()
	path := filepath.Join(dir, "x.wpp")
	d := NewDraft(path)
	tables := *s // as far as they are known
	tables.Threads = nil
	first, err := d.Spill(&tables, 0, wpp.Thread{TID: 4711, Grammar: wpptest.GrammarOf(0, 1, 0, 1)})
	if err != nil {
		fmt.Println(err)
		return
	}
	last := wpp.NewSegment(wpptest.GrammarOf(1, 0))
	s.Threads = []wpp.Thread{{TID: 4711, Grammar: wpp.Join([]*wpp.Segment{first, last})}}
	if err := d.Finish(context.Background(), s); err != nil {
		fmt.Println(err)
		return
	}
	read, err := ReadFile(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(read.InSegments(), slices.Collect(read.Threads[0].Grammar.Expand(0)))
	// Output: false [0 1 0 1 1 0]
}

// Whatever fails when a recording that has spilled is finished, what it spilled can be read: at its
// place, or where the error says. If it is given up, nothing is left.
func TestFinishOnAFullDisk(t *testing.T) {
	want := wpptest.Repetitive()
	for fail := 1; ; fail++ {
		path := filepath.Join(t.TempDir(), "x.wpp")
		f := &failingFiles{}
		d := newDraft(f, path)
		segment, err := d.Spill(want, 0, want.Threads[0])
		if err != nil {
			t.Fatal(err)
		}
		final := *want
		final.Threads = slices.Clone(want.Threads)
		final.Threads[0].Grammar = wpp.Join([]*wpp.Segment{segment})
		f.fail = f.step + fail
		err = d.Finish(t.Context(), &final)
		if f.failed == "" {
			if err != nil || fail < 6 {
				t.Fatalf("after %d steps: %v", fail, err)
			}
			break
		}
		left := path
		if names := namesIn(t, filepath.Dir(path)); len(names) == 1 && err != nil {
			left = filepath.Join(filepath.Dir(path), names[0])
		} else if err != nil {
			t.Fatalf("step %d, %s: left %v, error %v", fail, f.failed, names, err)
		}
		if left != path && !strings.Contains(err.Error(), left) {
			t.Errorf("step %d, %s: %s is left, error %v", fail, f.failed, left, err)
		}
		got, readErr := ReadFile(left)
		if readErr != nil && !errors.Is(readErr, format.ErrTruncated) || got == nil ||
			got.Threads[0].Grammar.Length(0) != want.Threads[0].Grammar.Length(0) {
			t.Errorf("step %d, %s: %v; read %v", fail, f.failed, err, readErr)
		}
	}
	dir := t.TempDir()
	d := NewDraft(filepath.Join(dir, "x.wpp"))
	if _, err := d.Spill(want, 0, want.Threads[0]); err != nil {
		t.Fatal(err)
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Finish(done, want); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	if names := namesIn(t, dir); len(names) > 0 {
		t.Errorf("left after it was given up: %v", names)
	}
}

// What is spilled into a draft is readable there before it is finished, and nothing but the
// snapshot is in its directory afterwards.
func TestDraft(t *testing.T) {
	want := wpptest.Repetitive()
	path := filepath.Join(t.TempDir(), "x.wpp")
	d := NewDraft(path)
	final, err := wpptest.InHalves(want, d.Spill)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Finish(t.Context(), final); err != nil {
		t.Fatal(err)
	}
	wpptest.SameStreams(t, want, final)
	got, err := ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	wpptest.SameStreams(t, want, got)
	if names := namesIn(t, filepath.Dir(path)); !slices.Equal(names, []string{"x.wpp"}) {
		t.Errorf("left in the directory: %v", names)
	}
}

// Sections that are written with a segment are read from the file from then on, are in it once, and
// can be copied into others.
func TestDraftWithSections(t *testing.T) {
	const kind = wpp.FirstSection + 30
	want := wpptest.Repetitive()
	dir := t.TempDir()
	d := NewDraft(filepath.Join(dir, "x.wpp"))
	var sections []*wpp.Section
	var texts []string
	final, err := wpptest.InHalves(want,
		func(tables *wpp.Snapshot, thread int, x wpp.Thread) (*wpp.Segment, error) {
			texts = append(texts, strings.Repeat(fmt.Sprint(len(texts)), 1000))
			s := wpp.NewSection(kind, []byte(texts[len(texts)-1]))
			sections = append(sections, s)
			part := *tables
			part.Sections = []*wpp.Section{s}
			segment, err := d.Spill(&part, thread, x)
			if err == nil && s.Source() == nil {
				t.Error("a section that was written is in memory")
			}
			return segment, err
		})
	if err != nil {
		t.Fatal(err)
	}
	texts = append(texts, "the last one")
	final.Sections = append(sections, wpp.NewSection(kind, []byte(texts[len(texts)-1])))
	check := func(path string) {
		t.Helper()
		got, err := ReadFile(path, kind)
		if err != nil {
			t.Fatal(err)
		}
		wpptest.SameStreams(t, want, got)
		var have []string
		for s := range got.SectionsOf(kind) {
			data, err := s.Data()
			if err != nil {
				t.Error(err)
			}
			have = append(have, string(data))
		}
		if !slices.Equal(have, texts) {
			t.Errorf("there are %d sections, want %d, or others", len(have), len(texts))
		}
	}
	if err := WriteFile(filepath.Join(dir, "middle.wpp"), final); err != nil {
		t.Fatal(err)
	}
	check(filepath.Join(dir, "middle.wpp"))
	if err := d.Finish(t.Context(), final); err != nil {
		t.Fatal(err)
	}
	check(filepath.Join(dir, "x.wpp"))
}
