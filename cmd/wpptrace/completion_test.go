package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestCompletion(t *testing.T) {
	for _, c := range []struct {
		line []string
		want string // among what it prints
	}{
		{[]string{"du"}, "dump\tPrint a snapshot in full"},
		{[]string{"dump", "--as", "in"}, "insns\n"},
		{[]string{"--on-overflow", "s"}, "gap\nstop\n"},
		{[]string{"stat", "--csv", ""}, "figure8\nfigure9\n"},
		{[]string{"hot", "--m"}, "--max-length\tmost `PATHS`"},
		{[]string{"hot", ""}, ":0\n"}, // a file
	} {
		out, _, status := wpptrace(append([]string{"__complete"}, c.line...)...)
		if status != 0 || !strings.Contains(out, c.want) {
			t.Errorf("%q: status %d: %q, want %q", c.line, status, out, c.want)
		}
	}
}

// Each command has a manual page, whose tables stand as the command prints them, and each shell its
// completion.
func TestDocs(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("go", "run", "-tags", "docs", ".", "docs",
		dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	root := rootCommand()
	for _, c := range append(root.Commands(), root) {
		page := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"
		text, err := os.ReadFile(filepath.Join(dir, "man1", page))
		if c.Hidden {
			if err == nil {
				t.Errorf("%s is there, of a hidden command", page)
			}
			continue
		}
		if err != nil {
			t.Error(err)
		}
		line, _, _ := strings.Cut(c.Example, "\n")
		if plain := strings.NewReplacer(`\-`, "-", `\\`,
			`\`).Replace(string(text)); !strings.Contains(plain, strings.TrimSpace(line)) {
			t.Errorf("%s lacks the example %q", page, line)
		}
	}
	for _, name := range []string{"wpptrace.bash", "_wpptrace", "wpptrace.fish"} {
		text, err := os.ReadFile(filepath.Join(dir, "completions", name))
		if err != nil || !strings.Contains(string(text), "__complete") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
