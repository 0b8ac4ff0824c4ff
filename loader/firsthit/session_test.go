package firsthit

import (
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"wpptrace/internal/testenv"
	"wpptrace/loader/cfg"
	"wpptrace/loader/cfg/recovery"
	"wpptrace/loader/image"
	"wpptrace/loader/target"
	"wpptrace/loader/x86"
)

// answering answers each line that it reads, by way of a jump that is taken, or not.
const answering = `
#include <stdio.h>
__attribute__((noinline)) static int choose(int c)
{
	if (c == 'a')
		return puts("first");
	return puts("second");
}
int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int c; (c = getchar()) != EOF;)
		if (c != '\n')
			choose(c);
	return 7;
}`

// A started is a process with a session for the jump of choose, and for the calls behind it.
type started struct {
	*testenv.Subject
	process *target.Process
	session *Session
	base    uint64
	places  []Place
}

func start(t *testing.T, o Options) *started {
	t.Helper()
	s := &started{Subject: testenv.Start(t, exec.Command(testenv.CompileC(t, answering, "-O0")))}
	s.tell(t, "a", "first\n")
	var err error
	if s.process, err = target.Open(s.PID()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.process.Close)
	exe, err := s.process.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { exe.Close() })
	st, err := exe.Stat()
	if err != nil {
		t.Fatal(err)
	}
	im, err := image.Open(exe, st.Size(), "prog")
	if err != nil {
		t.Fatal(err)
	}
	s.places = placesOf(t, im)
	if s.base, err = Base(s.process, im, exe, false); err != nil {
		t.Fatal(err)
	}
	s.session, err = Load(s.process,
		[]Image{{Image: im, File: exe, Base: s.base, Places: s.places}}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.session.Close() })
	return s
}

// placesOf are the jump and the calls of choose, by address.
func placesOf(t *testing.T, im *image.Image) (list []Place) {
	t.Helper()
	program, err := recovery.Recover(im)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range program.Routines {
		for i := range r.Blocks {
			last := r.Blocks[i].Insns[len(r.Blocks[i].Insns)-1]
			if r.Name == "choose" && (last.Kind == x86.Jcc || r.Blocks[i].End == cfg.Call) {
				list = append(list, Place{Addr: last.Addr, Condition: last.Condition()})
			}
		}
	}
	if len(list) != 3 {
		t.Fatalf("choose has the places %v", list)
	}
	return list
}

func (s *started) tell(t *testing.T, line, want string) {
	t.Helper()
	if _, err := s.In.Write([]byte(line + "\n")); err != nil {
		t.Fatal(err)
	}
	if got := s.Answer(); got != want {
		t.Fatalf("it answers %q", got)
	}
}

func (s *started) put(t *testing.T, places ...int) *Group {
	t.Helper()
	g, err := s.session.Put(places)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// passages are those of all places and outcomes.
func (s *started) passages(t *testing.T) (list [6]uint64) {
	t.Helper()
	if err := s.session.Passages(list[:]); err != nil {
		t.Fatal(err)
	}
	return list
}

// Passages are counted by place and outcome.
func TestPassages(t *testing.T) {
	s := start(t, Options{})
	s.put(t, 0, 1, 2)
	s.tell(t, "a", "first\n")
	s.tell(t, "b", "second\n")
	s.tell(t, "c", "second\n")
	if got, want := s.passages(t), [6]uint64{1, 2, 1, 0, 2, 0}; got != want {
		t.Errorf("passages %v, not %v", got, want)
	}
}

// A group that goes leaves those of its probes that another one has.
func TestReplaced(t *testing.T) {
	s := start(t, Options{})
	first := s.put(t, 0, 1, 2)
	second := s.put(t, 1, 2)
	if err := s.session.Remove(first); err != nil {
		t.Fatal(err)
	}
	if err := s.session.AwaitRemovals(); err != nil {
		t.Fatal(err)
	}
	fallen, err := s.session.Standing([]int{0, 1, 2})
	if err != nil || len(fallen) != 1 || fallen[0] != 0 {
		t.Errorf("fallen are %v, %v", fallen, err)
	}
	s.tell(t, "a", "first\n")
	if got, want := s.passages(t), [6]uint64{0, 0, 1, 0, 0, 0}; got != want {
		t.Errorf("passages %v, not %v", got, want)
	}
	if err := s.session.Remove(second); err != nil {
		t.Fatal(err)
	}
	if err := s.session.AwaitRemovals(); err != nil {
		t.Fatal(err)
	}
	s.IsClean()
}

// First passages are reported, with where the thread was; and what is passed often.
func TestReports(t *testing.T) {
	s := start(t, Options{Each: true})
	s.put(t, 0)
	for range Often {
		s.tell(t, "a", "first\n")
	}
	for _, want := range []uint64{1, Often} {
		p, err := s.session.Next(time.Now().Add(testenv.Patience))
		if err != nil {
			t.Fatal(err)
		}
		if p.Place != 0 || p.Outcome != 0 || p.Passages != want || p.Thread != s.PID() {
			t.Errorf("reported: %+v", p)
		}
		if (p.Trace != nil) != (want == 1) {
			t.Errorf("passage %d has the trace %v", want, p.Trace)
		}
		if p.Trace == nil {
			continue
		}
		fp, ok := p.Trace.Word(p.Trace.FP)
		if p.Trace.PC != s.base+s.places[0].Addr || !ok || fp <= p.Trace.FP {
			t.Errorf("the trace is of %x, and begins at %x: %x, %v", p.Trace.PC, p.Trace.SP, fp, ok)
		}
	}
	if n, err := s.session.Unreported(); n != 0 || err != nil {
		t.Errorf("%d were not reported: %v", n, err)
	}
}

// Of what takes long few passages are many. Who is woken gets what there is first.
func TestDear(t *testing.T) {
	s := start(t, Options{})
	s.session.images[0].Places[0].Dear = true
	s.put(t, 0)
	for range 2*DearOften + 1 {
		s.tell(t, "a", "first\n")
	}
	s.session.Wake()
	for _, want := range []uint64{DearOften, 2 * DearOften} {
		p, err := s.session.Next(time.Now().Add(testenv.Patience))
		if err != nil || p.Passages != want || p.Trace != nil {
			t.Errorf("reported: %+v, %v; want passage %d", p, err, want)
		}
	}
	for _, want := range []error{ErrWoken, os.ErrDeadlineExceeded} {
		if p, err := s.session.Next(time.Now().Add(time.Millisecond)); !errors.Is(err, want) {
			t.Errorf("%+v, %v; want %v", p, err, want)
		}
	}
}

// What stands in the way of probes is found before any goes in.
func TestForeignBreakpoint(t *testing.T) {
	s := start(t, Options{})
	s.put(t, 0)
	m := s.session.images[0]
	if _, err := Load(s.process, []Image{m}, Options{}); err == nil {
		t.Error("somebody else's breakpoints are taken for the program's code")
	}
}

// An outcome that is quiet is counted, and its first passage is not reported.
func TestQuiet(t *testing.T) {
	s := start(t, Options{Each: true})
	s.session.images[0].Places[0].Quiet[1] = true
	s.put(t, 0)
	for range 2 {
		s.tell(t, "b", "second\n")
	}
	s.tell(t, "a", "first\n")
	p, err := s.session.Next(time.Now().Add(testenv.Patience))
	if err != nil || p.Outcome != 0 || p.Passages != 1 {
		t.Errorf("reported: %+v, %v", p, err)
	}
	if got, want := s.passages(t), [6]uint64{1, 2, 0, 0, 0, 0}; got != want {
		t.Errorf("passages %v, not %v", got, want)
	}
}
