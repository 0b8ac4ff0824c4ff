package coverage

import (
	"fmt"
	"strings"
	"testing"
)

// Of a library without debug information those routines are printed of which most has run, and a
// library's is told from the program's.
func TestTableOfRoutines(t *testing.T) {
	r := &Report{Images: []ImageReport{{Name: "prog"}, {Name: "libx.so"}}}
	for i := range 30 {
		m := &r.Images[i%2]
		m.Routines = append(m.Routines, RoutineReport{Routine: fmt.Sprintf("fn_%d", i),
			Blocks: Share{i, 40}})
	}
	var b strings.Builder
	if err := r.write(&b); err != nil {
		t.Fatal(err)
	}
	const want = `No debug information with source lines: showing 20 of 29 routines that ran

BLOCKS           ROUTINE
29 of 40  72.5%  libx.so:fn_29
28 of 40  70.0%  prog:fn_28
`
	if !strings.HasPrefix(b.String(), want) || strings.Contains(b.String(), "fn_9\n") {
		t.Errorf("printed:\n%s", b.String())
	}
}

// Of a library with debug information hundreds of files may not have run: they are counted.
func TestTableOfFiles(t *testing.T) {
	for _, c := range []struct{ files, lines int }{{20, 20}, {21, 0}} {
		r := &Report{Lines: Share{1, 200}, Files: []FileReport{{Name: "a.c", Lines: Share{1, 9}}}}
		for range c.files {
			r.Files = append(r.Files, FileReport{Name: "unrun.c", Lines: Share{0, 9}})
		}
		var b strings.Builder
		if err := r.write(&b); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(b.String(), "unrun.c\n"); n != c.lines ||
			!strings.Contains(b.String(), "a.c\n") ||
			strings.Contains(b.String(), "21 more files of which no line") != (c.lines == 0) {
			t.Errorf("%d files that have not run:\n%s", c.files, b.String())
		}
	}
}
