package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"wpptrace/internal/testenv"
)

const root = "../.."

// Every command of the README works. Those of make are looked up only: this test is one of theirs.
// For what takes long, a second will do.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile(root + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	s := testenv.StartServer(t)
	dir := t.TempDir()
	n := 0
	for line := range strings.Lines(string(readme)) {
		command, ok := strings.CutPrefix(line, "$ ")
		if !ok {
			continue
		}
		n++
		command = strings.Replace(command, " -d 2m ", " -d 1s ", 1)
		cmd := exec.Command("sh", "-c", command)
		cmd.Dir = dir
		if strings.HasPrefix(command, "make ") {
			cmd = exec.Command("sh", "-c", strings.Replace(command, "make ", "make -n ", 1))
			cmd.Dir = root
		}
		cmd.Env = append(os.Environ(), "PID="+strconv.Itoa(s.PID()))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
	}
	if n < 9 {
		t.Errorf("the README has %d commands", n)
	}
	if limit := fmt.Sprintf("`--max-slowdown` (%d times by default)",
		defaultMaxSlowDown); !strings.Contains(strings.Join(strings.Fields(string(readme)), " "),
		limit) {
		t.Errorf("the README does not say %q", limit)
	}
	s.IsClean()
	s.End()
}

// The README's sample has the lines of today, but for the numbers and the rows of the table.
func TestReadmeSample(t *testing.T) {
	readme, err := os.ReadFile(root + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(readme), "```\nwpptrace: ")
	sample, _, ok := strings.Cut("wpptrace: "+after, "```")
	if !ok {
		t.Fatal("the README has no sample")
	}
	bash := exec.Command("bash", "demo/collatz.sh")
	bash.Dir = root
	if err := bash.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bash.Process.Kill(); bash.Wait() })
	t.Chdir(t.TempDir())
	out, errs, status := wpptrace("-p", strconv.Itoa(bash.Process.Pid), "-d", "0.5",
		"--max-slowdown", "0", "-o", "demo.wpp")
	if status != 0 {
		t.Fatal(errs)
	}
	real := map[string]bool{"...": true}
	for line := range strings.Lines(errs + out) {
		real[layout(line)] = true
	}
	for line := range strings.Lines(sample) {
		if isRow := strings.HasPrefix(line, "  ") && !strings.HasPrefix(line, "  SHARE"); !isRow &&
			!real[layout(line)] {
			t.Errorf("wpptrace does not print lines such as %q, but:\n%s%s", line, errs, out)
		}
	}
}

var number = regexp.MustCompile(`\d+(\.\d+)?`)

// layout is a line without its numbers and the widths of its columns.
func layout(line string) string {
	return strings.Join(strings.Fields(number.ReplaceAllString(line, "N")), " ")
}
