package recovery_test

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

// A coverage is how many builds of a program have the routine that a test is about, and not left
// out. By its name, a program is a file in testdata.
type coverage map[string]int

// check compares a coverage with the floors in a golden file. How much is covered depends on the
// compiler: less than the floor is a failure, and more is logged. With -update floors rise, and new
// ones are written: who wants one to sink edits the file.
func (c coverage) check(t *testing.T, golden string) {
	t.Helper()
	path := filepath.Join("testdata", golden)
	floors := readFloors(t, path)
	if *update {
		var lines strings.Builder
		for _, name := range slices.Sorted(maps.Keys(c)) {
			if c[name] < floors[name] {
				t.Fatalf("%s: %s would sink from %d to %d: where that is meant, edit the file",
					path, name, floors[name], c[name])
			}
			fmt.Fprintf(&lines, "%s %d\n", name, c[name])
		}
		if err := os.WriteFile(path, []byte(lines.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, name := range slices.Sorted(maps.Keys(c)) {
		floor, ok := floors[name]
		switch got := c[name]; {
		case !ok:
			t.Errorf("%s has no floor in %s: run the test with -update", name, path)
		case got < floor:
			t.Errorf("%s: in %d builds, the routine is not left out, want %d or more", name, got,
				floor)
		case got > floor:
			t.Logf("%s: in %d builds, the routine is not left out, more than the floor of %d", name,
				got, floor)
		}
		delete(floors, name)
	}
	for name := range floors {
		t.Errorf("%s has a floor in %s, and no test", name, path)
	}
}

// readFloors reads the counts of a golden file, which has a name and a count on each line. With
// -update, the file need not be there.
func readFloors(t *testing.T, path string) coverage {
	t.Helper()
	file, err := os.Open(path)
	if *update && errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	floors := coverage{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var name string
		var count int
		if _, err := fmt.Sscan(lines.Text(), &name, &count); err != nil {
			t.Fatalf("%s: %q: want a name and a count", path, lines.Text())
		}
		floors[name] = count
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return floors
}
