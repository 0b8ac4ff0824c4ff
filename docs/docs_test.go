// Package docs checks what the documents name.
package docs

import (
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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
	named := regexp.MustCompile("`([a-z][a-z0-9_-]*(?:/[A-Za-z0-9._-]+)+)`")
	for _, m := range named.FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat(filepath.Join("..", m[1])); err != nil {
			t.Errorf("the architecture names %s: %v", m[1], err)
		}
	}
	packages := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "doc.go" {
			return err
		}
		packages++
		if name := filepath.ToSlash(filepath.Dir(path))[len("../"):]; !strings.Contains(text,
			"`"+name+"`") {
			t.Errorf("the architecture does not name %s", name)
		}
		return nil
	})
	if err != nil || packages < 50 {
		t.Fatalf("%d packages, %v", packages, err)
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

// No line is wider than a terminal beside another: 100 columns, a tab for 4. A line of code may be
// wider by what is in its literals, and one that a tool reads by what that takes on a line.
func TestWidth(t *testing.T) {
	paths := append(documents(t), "../Makefile")
	scripts, err := filepath.Glob("../.ci/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range slices.Concat(paths, scripts, sources(t)) {
		n := 0
		fits := fitsOf(t, path)
		for line := range strings.Lines(read(t, path)) {
			n++
			if line = strings.TrimSuffix(line, "\n"); columns(line) > widest && !fits(n, line) {
				t.Errorf("%s:%d has %d columns", path, n, columns(line))
			}
		}
	}
}

const widest = 100

func columns(line string) int {
	return utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    "))
}

// sources are the files of Go and C that people write.
func sources(t *testing.T) (paths []string) {
	t.Helper()
	generated := regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == ".git" || d.Name() == "build"):
			return filepath.SkipDir
		case d.IsDir() || !slices.Contains([]string{".go", ".c", ".h", ".cc"}, filepath.Ext(path)),
			generated.MatchString(read(t, path)):
			return nil
		}
		paths = append(paths, path)
		return nil
	})
	if err != nil || len(paths) < 300 {
		t.Fatalf("%d files, %v", len(paths), err)
	}
	return paths
}

var literal = regexp.MustCompile("\"(?:\\\\.|[^\"\\\\])*\"|`[^`]*`")

// fitsOf returns what reports whether a wide line of a file would fit without its literals.
func fitsOf(t *testing.T, path string) func(n int, line string) bool {
	raw := rawLines(t, path)
	return func(n int, line string) bool {
		return strings.HasPrefix(line, "//go:generate ") || raw[n] ||
			columns(literal.ReplaceAllString(line, `""`)) <= widest
	}
}

// rawLines are the lines of a test in Go that are within raw literals: programs and what they
// print.
func rawLines(t *testing.T, path string) map[int]bool {
	if !strings.HasSuffix(path, "_test.go") {
		return nil
	}
	lines := map[int]bool{}
	text := []byte(read(t, path))
	files := token.NewFileSet()
	file := files.AddFile(path, -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)
	for {
		pos, kind, what := s.Scan()
		switch {
		case kind == token.EOF:
			return lines
		case kind == token.STRING && what[0] == '`':
			first := file.Line(pos)
			for i := range strings.Count(what, "\n") + 1 {
				lines[first+i] = true
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
