package coverage

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"testing"
	"time"

	"wpptrace/internal/testenv"
	"wpptrace/loader/target"
)

// What several processes of a program run is united; all of them are as before afterwards.
func TestRunAll(t *testing.T) {
	program := compile(t, "server.c", "-O0")
	var servers []*testenv.Subject
	var processes []*target.Process
	for range 2 {
		s := testenv.Start(t, exec.Command(program))
		ask(t, s, "nothing")
		p, err := target.Open(s.PID())
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		servers, processes = append(servers, s), append(processes, p)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var stand sync.WaitGroup
	stand.Add(len(servers))
	go func() {
		defer cancel()
		stand.Wait()
		for i, command := range []string{"add\n", "scale\n"} {
			if _, err := servers[i].In.Write([]byte(command)); err != nil {
				return
			}
			_, _ = servers[i].Out.ReadString('\n')
		}
	}()
	c, err := RunAll(ctx, processes, Options{Began: func(int, int) { stand.Done() }})
	if err != nil {
		t.Fatal(err)
	}
	ran := map[string]bool{}
	for _, routine := range NewReport(c).Images[0].Routines {
		ran[routine.Routine] = routine.Ran != nil && *routine.Ran
	}
	for _, name := range []string{"add", "scale", "run", "main"} {
		if !ran[name] {
			t.Errorf("%s has not run, as it seems: %v", name, ran)
		}
	}
	for _, s := range servers {
		s.IsClean()
		s.End()
	}
}

func TestNamed(t *testing.T) {
	s := testenv.StartServer(t)
	list, err := Named("bash")
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, p := range list {
		found = found || p.PID == s.PID()
		p.Close()
	}
	if !found {
		t.Errorf("process %d is not among %d of its name", s.PID(), len(list))
	}
	if _, err := Named("no such name"); err == nil {
		t.Error("there is a process of a name that none has")
	}
}

// A process that exits while its probes go in is named.
func TestExitIsOfAProcess(t *testing.T) {
	s := testenv.Start(t, exec.Command("sleep", "1000"))
	p, err := target.Open(s.PID())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := s.Cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.Wait(10 * time.Second)
	err = (&observation{process: p}).gone()
	want := fmt.Sprintf("observe process %d (sleep): it has exited", s.PID())
	if !errors.Is(err, target.ErrGone) || err.Error() != want {
		t.Errorf("%v", err)
	}
}
