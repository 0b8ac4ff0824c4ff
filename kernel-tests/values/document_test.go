package valuetests

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocument: what docs/values.md has of a bug is what the commands print, but for addresses and
// thread ids, which are the same wherever they are the same there.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/values.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "## A bug, found\n")
	section, _, _ = strings.Cut(section, "\n## ")
	dir := t.TempDir()
	source, err := os.ReadFile("testdata/freed.c")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "freed.c"), source, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Dir(tracer.Path())+":"+os.Getenv("PATH"))
	list := examples(section)
	if len(list) != 4 {
		t.Fatalf("the document has %d commands", len(list))
	}
	same := &renaming{to: map[string]string{}, from: map[string]string{}}
	for _, x := range list {
		sh := exec.CommandContext(t.Context(), "sh", "-c", same.apply(x.command))
		sh.Dir = dir
		out, err := sh.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", x.command, err, out)
		}
		printed := strings.Split(string(out), "\n")
		for i, want := range x.prints {
			if want == "..." {
				break
			}
			if i >= len(printed) || !same.match(want, printed[i]) {
				if i == 0 && os.Getenv("CI") == "" {
					t.Skipf("this compiler makes another program than the document has: %s", out)
				}
				t.Fatalf("line %d, %q, is not what is printed:\n%s", i+1, want, out)
			}
		}
	}
}

// An example is a command of a document, and what it prints, up to a line that is "...".
type example struct {
	command string
	prints  []string
}

// examples are those of a text: commands begin with "$ ", and it is all indented.
func examples(text string) (list []*example) {
	within := false
	for line := range strings.Lines(text) {
		line, isIndented := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "    ")
		command, isCommand := strings.CutPrefix(line, "$ ")
		switch {
		case isIndented && isCommand:
			list, within = append(list, &example{command: command}), true
		case !isIndented && line != "":
			within = false
		case within:
			x := list[len(list)-1]
			x.prints = append(x.prints, line)
		}
	}
	return list
}

// A renaming says which addresses and ids stand for which, one for one.
type renaming struct{ to, from map[string]string }

var (
	renamed = regexp.MustCompile(`\b[0-9a-f]{10,16}\b|\bthread \d+|\b\d{2,7}\b`)
	number  = regexp.MustCompile(`[0-9a-f]{10,16}|\d{2,7}`)
)

// match reports whether a line of the document is one that was printed: spaces are all alike, and
// "..." at the end is any rest.
func (r *renaming) match(want, printed string) bool {
	want, isBegin := strings.CutSuffix(strings.Join(strings.Fields(want), " "), "...")
	pattern, at := "^", 0
	var names []string
	for _, x := range renamed.FindAllStringIndex(want, -1) {
		text := want[x[0]:x[1]]
		name := number.FindString(text)
		if name == text && len(name) < 10 && r.to[name] == "" { // it is no thread's
			continue
		}
		pattern += regexp.QuoteMeta(want[at:x[0]]+strings.TrimSuffix(text, name)) + "([0-9a-f]+)"
		names, at = append(names, name), x[1]
	}
	pattern += regexp.QuoteMeta(want[at:])
	if !isBegin {
		pattern += "$"
	}
	found := regexp.MustCompile(pattern).FindStringSubmatch(
		strings.Join(strings.Fields(printed), " "))
	if found == nil {
		return false
	}
	for i, name := range names {
		is := found[i+1]
		if to, ok := r.to[name]; ok && to != is {
			return false
		}
		if from, ok := r.from[is]; ok && from != name {
			return false
		}
		r.to[name], r.from[is] = is, name
	}
	return true
}

// apply has a text of the document name what was printed.
func (r *renaming) apply(text string) string {
	return number.ReplaceAllStringFunc(text, func(x string) string { return cmp.Or(r.to[x], x) })
}
