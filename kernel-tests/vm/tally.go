package vm

import (
	"fmt"
	"path"
	"regexp"
)

// A Tally is the outcome of tests, as go test -v prints it, line by line. Those that consist of
// others count for nothing if they pass.
type Tally struct {
	Passed, Skipped int
	Failed          []string

	parents map[string]bool
}

var outcome = regexp.MustCompile(`^\s*(=== RUN|--- PASS:|--- FAIL:|--- SKIP:) +(\S+)`)

// Read takes a line.
func (t *Tally) Read(line string) {
	match := outcome.FindStringSubmatch(line)
	if match == nil {
		return
	}
	switch result, name := match[1], match[2]; {
	case result == "=== RUN":
		if t.parents == nil {
			t.parents = map[string]bool{}
		}
		for p := path.Dir(name); p != "."; p = path.Dir(p) {
			t.parents[p] = true
		}
	case result == "--- FAIL:":
		t.Failed = append(t.Failed, name)
	case t.parents[name]:
	case result == "--- PASS:":
		t.Passed++
	default:
		t.Skipped++
	}
}

func (t *Tally) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", t.Passed, len(t.Failed), t.Skipped)
}
