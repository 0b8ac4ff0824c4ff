package testenv

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A subject answers and ends, and its code is its file's, also when that is deleted, until
// somebody writes there.
func TestSubject(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(bash)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "a\nb")
	if err := os.WriteFile(program, content, 0o755); err != nil {
		t.Fatal(err)
	}
	s := StartSubject(t, exec.Command(program, "-c", Server))
	if got, want := s.Ask(9), StartServer(t).Ask(9); got != want {
		t.Errorf("it answers %q, the server %q", got, want)
	}
	s.IsClean()
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	s.IsClean()
	s.BecomesClean()
	patch(t, s)
	if err := s.residue(); err == nil {
		t.Error("what was written to its code is not seen")
	}
	s.Cmd.Process.Kill()
}

// patch writes a breakpoint over the last byte of the code of a subject's program that is mapped.
func patch(t *testing.T, s *Subject) {
	t.Helper()
	maps, err := os.Open(fmt.Sprintf("/proc/%d/maps", s.PID()))
	if err != nil {
		t.Fatal(err)
	}
	defer maps.Close()
	mem, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", s.PID()), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	var lo, hi int64
	var access string
	for access != "r-xp" { // the program's comes first
		if n, err := fmt.Fscanf(maps, "%x-%x %s", &lo, &hi, &access); n < 3 && err == io.EOF {
			t.Fatal("it has no code")
		}
		for c := []byte{0}; c[0] != '\n'; {
			if _, err := maps.Read(c); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := mem.WriteAt([]byte{0xcc}, hi-1); err != nil {
		t.Fatal(err)
	}
}

func TestServerEnds(t *testing.T) {
	s := StartServer(t)
	s.Put(2)
	s.Answer()
	s.End()
}
