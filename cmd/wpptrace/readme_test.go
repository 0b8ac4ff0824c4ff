package main

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

const root = "../.."

// Every command of the README works. Those of make are looked up only: this test is one of theirs.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile(root + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	s := startServer(t)
	dir := t.TempDir()
	n := 0
	for line := range strings.Lines(string(readme)) {
		command, ok := strings.CutPrefix(line, "$ ")
		if !ok {
			continue
		}
		n++
		cmd := exec.Command("sh", "-c", command)
		cmd.Dir = dir
		if strings.HasPrefix(command, "make ") {
			cmd = exec.Command("sh", "-c", strings.Replace(command, "make ", "make -n ", 1))
			cmd.Dir = root
		}
		cmd.Env = append(os.Environ(), "PID="+strconv.Itoa(s.pid()))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
	}
	if n < 9 {
		t.Errorf("the README has %d commands", n)
	}
	s.isClean()
	s.end()
}
