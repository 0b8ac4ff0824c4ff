package testenv

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Server is a script for bash, which was not built to be traced. It answers each number that it
// reads by a line, and exits with status 7 at the end.
const Server = `s=1
while read -r n; do
	for ((i = 0; i < n; i++)); do
		s=$(((s * 31 + i) % 1000003))
		case $s in *7) t=$t$s ;; *) t=${t%?} ;; esac
	done
	echo "$s ${#t}"
done
exit 7`

// A Subject is a running program that tests trace. It belongs to the test's goroutine, but for In
// and Out.
type Subject struct {
	Cmd *exec.Cmd
	In  io.WriteCloser
	Out *bufio.Reader // for who waits longer than Answer, or on another goroutine

	t    *testing.T
	pipe *os.File // what Out reads
}

// Start runs a program, which is killed when the test ends.
func Start(t *testing.T, cmd *exec.Cmd) *Subject {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return &Subject{Cmd: cmd, In: in, Out: bufio.NewReader(out), t: t, pipe: out.(*os.File)}
}

// StartSubject runs a program that does as the server does, and waits for its first answer.
func StartSubject(t *testing.T, cmd *exec.Cmd) *Subject {
	t.Helper()
	s := Start(t, cmd)
	s.Ask(1)
	return s
}

// StartServer runs the server and waits for its first answer.
func StartServer(t *testing.T) *Subject {
	t.Helper()
	return StartSubject(t, exec.Command("bash", "-c", Server))
}

// PID is the number of its process.
func (s *Subject) PID() int { return s.Cmd.Process.Pid }

// Ask has the program work for n rounds and returns its answer.
func (s *Subject) Ask(n int) string {
	s.t.Helper()
	s.Put(n)
	return s.Answer()
}

// Put has the program begin to work for n rounds.
func (s *Subject) Put(n int) {
	s.t.Helper()
	if _, err := fmt.Fprintln(s.In, n); err != nil {
		s.t.Fatal(err)
	}
}

// Answer waits for what the program has found out, for Patience.
func (s *Subject) Answer() string {
	s.t.Helper()
	if err := s.pipe.SetReadDeadline(time.Now().Add(Patience)); err != nil {
		s.t.Fatal(err)
	}
	line, err := s.Out.ReadString('\n')
	if err != nil {
		s.t.Fatalf("the program does not answer, but %q: %v", line, err)
	}
	return line
}

// End lets the program come to its end, which must be its own.
func (s *Subject) End() {
	s.t.Helper()
	s.In.Close()
	s.Cmd.Wait()
	if got := s.Cmd.ProcessState.ExitCode(); got != 7 {
		s.t.Errorf("the program ended with %v, not with status 7", s.Cmd.ProcessState)
	}
}

// IsClean fails the test unless the program's code is as in its file: no probe is left.
func (s *Subject) IsClean() {
	s.t.Helper()
	if err := s.residue(); err != nil {
		s.t.Errorf("something is left in the program: %v", err)
	}
}

// BecomesClean waits for that: of what was killed, the kernel takes the probes out by and by.
func (s *Subject) BecomesClean() {
	s.t.Helper()
	Eventually(s.t, func() bool { return s.residue() == nil }, "its code is that of its file")
}

// residue is what differs between the program's code and its file.
func (s *Subject) residue() error {
	s.t.Helper()
	proc := fmt.Sprintf("/proc/%d/", s.PID())
	var files [2]*os.File
	for i, name := range []string{"exe", "mem"} {
		f, err := os.Open(proc + name)
		if err != nil {
			s.t.Fatal(err)
		}
		defer f.Close()
		files[i] = f
	}
	exe, mem := files[0], files[1]
	own, err := exe.Stat()
	if err != nil {
		s.t.Fatal(err)
	}
	maps, err := os.ReadFile(proc + "maps")
	if err != nil {
		s.t.Fatal(err)
	}
	compared := false
	for line := range strings.Lines(string(maps)) {
		var lo, hi, offset int64
		var access string
		if _, err := fmt.Sscanf(line, "%x-%x %s %x", &lo, &hi, &access, &offset); err != nil {
			continue // beyond what has a sign: no file's
		}
		of, err := os.Stat(fmt.Sprintf("%smap_files/%x-%x", proc, lo, hi))
		if !strings.Contains(access, "x") || err != nil || !os.SameFile(of, own) {
			continue
		}
		if err := differ(exe, mem, lo, hi, offset); err != nil {
			return err
		}
		compared = true
	}
	if !compared {
		return errors.New("no code of its file is mapped")
	}
	return nil
}

// differ compares memory from lo up to hi with a file from an offset on.
func differ(file, mem *os.File, lo, hi, offset int64) error {
	want, got := make([]byte, hi-lo), make([]byte, hi-lo)
	if _, err := file.ReadAt(want, offset); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if _, err := mem.ReadAt(got, lo); err != nil {
		return err
	}
	if bytes.Equal(got, want) {
		return nil
	}
	i := 0
	for got[i] == want[i] {
		i++
	}
	return fmt.Errorf("at %x there is %#x, in its file %#x", lo+int64(i), got[i], want[i])
}
