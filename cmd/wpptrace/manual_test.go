package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each manual page is titled as its command, and names values of flags as --help does, not what
// these are at first; the program's own lists the commands, and has its exit statuses.
func TestManualPages(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("go", "run", "-tags", "docs", ".", "docs",
		dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "man1", "*.1"))
	if err != nil || len(pages) < 10 {
		t.Fatalf("%q, %v", pages, err)
	}
	value := regexp.MustCompile(`\\fB-.*\\fP(\[?=|.*=)`)
	for _, path := range pages {
		data, err := os.ReadFile(path)
		must(t, err)
		page, name := string(data), strings.TrimSuffix(filepath.Base(path), ".1")
		wants := []string{`.TH "` + strings.ToUpper(name) + `" "1"`, "\n.SH OPTIONS\n", "--help"}
		if name == "wpptrace" {
			wants = append(wants, "\n.SH COMMANDS\n", "\n.SH EXIT STATUS\n", "--version",
				"Print the hot subpaths of a snapshot", `\fB--pid\fP \fIPID\fP`,
				`\fB--overhead\fP \fIPERCENT\fP`, "(default 12ms)")
		}
		for _, want := range wants {
			if !strings.Contains(page, want) {
				t.Errorf("%s: no %q", name, want)
			}
		}
		if found := value.FindString(page); found != "" {
			t.Errorf("%s: %q", name, found)
		}
	}
}

// Help on a command that there is not is a mistake on the command line.
func TestHelpOnNoCommand(t *testing.T) {
	if out, errs, status := wpptrace("help", "nosuch"); status != exitUsage || out != "" ||
		!strings.Contains(errs, `no command "nosuch" to explain`) {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	for _, args := range [][]string{{"help"}, {"help", "hot"}} {
		if out, errs, status := wpptrace(args...); status != 0 || errs != "" ||
			!strings.Contains(out, "Examples:") {
			t.Errorf("%q: status %d\n%s%s", args, status, out, errs)
		}
	}
}
