// Package docs checks what the documents name.
package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// documents are those of users.
func documents(t *testing.T) (paths []string) {
	t.Helper()
	paths, err := filepath.Glob("*.md")
	if err != nil || len(paths) < 5 {
		t.Fatalf("%q, %v", paths, err)
	}
	return append(paths, "../README.md")
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A promise is worth what its test is: each that a document names is there, in the package that it
// names.
func TestNamedTestsExist(t *testing.T) {
	named := regexp.MustCompile("`([a-z][a-z0-9/-]*)`[^:`]{0,30}: ((?:[\\s,]|and|in|`make " +
		"soak`|(?:Test|Fuzz)[A-Z]\\w*)+)")
	n := 0
	for _, path := range documents(t) {
		for _, m := range named.FindAllStringSubmatch(read(t, path), -1) {
			for _, name := range regexp.MustCompile(`(?:Test|Fuzz)\w+`).FindAllString(m[2], -1) {
				n++
				if !hasTest(t, filepath.Join("..", m[1]), name) {
					t.Errorf("%s names %s of %s, which has no such test", path, name, m[1])
				}
			}
		}
	}
	if n < 70 {
		t.Errorf("the documents name %d tests", n)
	}
}

// hasTest reports whether a package has a test.
func hasTest(t *testing.T, dir, name string) bool {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.Contains(read(t, f), "func "+name+"(") {
			return true
		}
	}
	return false
}

// Packages and files that the architecture names are there, and it names each package.
func TestNamedFilesExist(t *testing.T) {
	text := read(t, "architecture.md")
	for _, m := range regexp.MustCompile("`([a-z][a-z0-9_-]*(?:/[A-Za-z0-9._-]+)+)`").FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat(filepath.Join("..", m[1])); err != nil {
			t.Errorf("the architecture names %s: %v", m[1], err)
		}
	}
	packages, err := filepath.Glob("../*/*/doc.go")
	if err != nil || len(packages) < 20 {
		t.Fatalf("%q, %v", packages, err)
	}
	for _, p := range packages {
		if name := filepath.ToSlash(filepath.Dir(p))[len("../"):]; !strings.Contains(text,
			"`"+name+"`") {
			t.Errorf("the architecture does not name %s", name)
		}
	}
}

// Links lead to files that are there, and to headings.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^):]+)\)`)
	for _, path := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(read(t, path), -1) {
			file, heading, _ := strings.Cut(m[1], "#")
			to := path
			if file != "" {
				to = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: link to %s: %v", path, m[1], err)
			} else if heading != "" && !hasHeading(read(t, to), heading) {
				t.Errorf("%s: link to %s: no such heading", path, m[1])
			}
		}
	}
}

// hasHeading reports whether a document has a heading that GitHub calls so.
func hasHeading(text, anchor string) bool {
	signs := regexp.MustCompile("[^a-z0-9 _-]")
	for line := range strings.Lines(text) {
		title := strings.TrimLeft(line, "#")
		if title != line &&
			strings.ReplaceAll(signs.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)),
				""), " ", "-") == anchor {
			return true
		}
	}
	return false
}

// No line is wider than a terminal beside another: 100 columns, a tab for 4.
func TestWidth(t *testing.T) {
	scripts, err := filepath.Glob("../.ci/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(append(documents(t), "../Makefile"), scripts...) {
		n := 0
		for line := range strings.Lines(read(t, path)) {
			n++
			line = strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", "    ")
			if columns := utf8.RuneCountInString(line); columns > 100 {
				t.Errorf("%s:%d has %d columns", path, n, columns)
			}
		}
	}
}

// Known limits say when, and what one sees.
func TestLimitsAreComplete(t *testing.T) {
	_, limits, ok := strings.Cut(read(t, "safety.md"), "## Known limits\n")
	if !ok {
		t.Fatal("no known limits")
	}
	parts := strings.Split(limits, "\n#### ")
	if len(parts) < 20 {
		t.Fatalf("%d limits", len(parts))
	}
	for _, part := range parts[1:] {
		title, text, _ := strings.Cut(part, "\n")
		for _, must := range []string{"- **When:** ", "- **You see:** "} {
			if !strings.Contains(text, must) {
				t.Errorf("limit %q lacks %q", title, fmt.Sprint(must))
			}
		}
	}
}
