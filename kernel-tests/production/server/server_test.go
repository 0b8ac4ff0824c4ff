package server

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"wpptrace/internal/testenv"
	"wpptrace/kernel-tests/production/load"
)

// Each server that starts fast answers, and leaves nothing when it is stopped.
func TestServers(t *testing.T) {
	for _, s := range []Server{redis{}, memcached{}, nginx{}, perl, cxx} {
		t.Run(s.Name(), func(t *testing.T) {
			if err := Missing(s); errors.Is(err, ErrMissing) {
				t.Skip(err) // make production installs them
			}
			if os.Getuid() != 0 {
				t.Skip("some refuse to run as anybody but root")
			}
			dir := t.TempDir()
			r, err := s.Start(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			group := r.process.cmd.Process.Pid
			l := load.Start(r.Clients)
			time.Sleep(100 * time.Millisecond)
			f, err := l.Figures()
			if err != nil || f.Answers < 10 {
				t.Errorf("%+v, %v", f, err)
			}
			if comm, err := os.ReadFile("/proc/" + strconv.Itoa(r.PID) + "/comm"); err != nil {
				t.Errorf("%q, %v", comm, err)
			}
			if err := errors.Join(l.Close(), r.Stop()); err != nil {
				t.Error(err)
			}
			if err := syscall.Kill(-group, 0); !errors.Is(err, syscall.ESRCH) {
				t.Errorf("something is left: %v", err)
			}
		})
	}
}

// A server that does not come up fails at once, and says what the server has said.
func TestFailingServer(t *testing.T) {
	dir := t.TempDir()
	p, err := start(exec.Command("/bin/sh", "-c", "echo no such port >&2; exit 3"), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = running(t.Context(), p, 1, func() (*lines, error) { return dial("127.0.0.1:1", nil) })
	if err == nil || !strings.Contains(err.Error(), "no such port") ||
		!strings.Contains(err.Error(), "exit status 3") {
		t.Error(err)
	}
}

// What does not heed SIGTERM, and what a server has started, ends all the same.
func TestStopEndsAll(t *testing.T) {
	p, err := start(exec.Command("/bin/sh", "-c", "sleep 1000 & sleep 1000 & echo up >&2; wait"),
		t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, func() bool { return p.lastLines() == "up" }, "the shell is up")
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	testenv.Eventually(t, func() bool {
		return errors.Is(syscall.Kill(-p.cmd.Process.Pid, 0), syscall.ESRCH)
	}, "all have ended")
}

func TestFind(t *testing.T) {
	list, err := Find([]string{"nginx", "redis"})
	if err != nil || len(list) != 2 || list[0].Name() != "nginx" {
		t.Errorf("%v, %v", list, err)
	}
	if _, err := Find([]string{"apache"}); err == nil || !strings.Contains(err.Error(), "nginx") {
		t.Error(err)
	}
	seen := map[string]bool{}
	for _, s := range All() {
		if seen[s.Name()] {
			t.Errorf("there are two %s", s.Name())
		}
		seen[s.Name()] = true
		for _, need := range s.Needs() {
			if !strings.Contains(need, ":") {
				t.Errorf("%s: %q names no package", s.Name(), need)
			}
		}
	}
	missing := program{name: "x", needs: []string{"no-such-command:a", "sh:b"}}
	if err := Missing(missing); !errors.Is(err, ErrMissing) ||
		!strings.HasSuffix(err.Error(), "apt-get install a") {
		t.Error(err)
	}
}

// answering answers what arrives on a connection, in pieces, whatever was asked.
func answering(t *testing.T, answers ...string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		in := bufio.NewReader(conn)
		for _, a := range answers {
			if _, err := in.ReadByte(); err != nil {
				return
			}
			_, _ = in.Discard(in.Buffered())
			for _, half := range []string{a[:len(a)/2], a[len(a)/2:]} {
				_, _ = conn.Write([]byte(half))
				time.Sleep(time.Millisecond)
			}
		}
	}()
	return l.Addr().String()
}

// Clients read an answer to its end and no further, and notice one that is wrong.
func TestClients(t *testing.T) {
	ask := func(c load.Client, err error) error {
		for range 2 {
			if err == nil {
				err = c.Ask()
			}
		}
		return err
	}
	get := []exchange{{request: "get a\r\n", prefix: "VALUE", body: true, last: "END"}}
	set := []exchange{{request: "set\r\n", prefix: "+OK"}}
	value := "VALUE a 0 5\r\nab\ncd\r\nEND\r\n"
	page := "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\na\r\n\r\nb"
	ready := "Z\x00\x00\x00\x05I"
	row := "D\x00\x00\x00\x06ab" + ready
	for name, err := range map[string]error{
		"lines": ask(dial(answering(t, value, value, value), get)),
		"line":  ask(dial(answering(t, "+OK\r\n", "+OK\r\n", "+OK\r\n"), set)),
		"web":   ask(dialWeb(answering(t, page, page, page))),
		"postgres": ask(dialPG(answering(t, "K\x00\x00\x00\x0c\x00\x00\x00\x07abcd"+ready, row, row,
			row))),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, err := range map[string]error{
		"lines":    ask(dial(answering(t, "VALUE a 0 x\r\n"), get)),
		"line":     ask(dial(answering(t, "-ERR\r\n"), set)),
		"end":      ask(dial(answering(t, "+OK\r\n"), set)),
		"web":      ask(dialWeb(answering(t, "HTTP/1.1 200 OK\r\n\r\n"))),
		"protocol": ask(dialWeb(answering(t, "SSH-2.0\r\n"))),
		"postgres": ask(dialPG(answering(t, "E\x00\x00\x00\x06no"))),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// The large program is valid C, ends for whatever it is asked, and is the same each time.
func TestBigProgram(t *testing.T) {
	if err := Missing(big); err != nil {
		testenv.Missing(t, err)
	}
	const routines, units = 40, 6
	first, same, other := unitSource(1, routines), unitSource(1, routines), unitSource(2, routines)
	if first != same || first == other {
		t.Error("a unit does not follow from its seed")
	}
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	text, err := sources.ReadFile("src/big.c")
	if err != nil {
		t.Fatal(err)
	}
	src, err := write(dir, "big.c", text)
	if err != nil {
		t.Fatal(err)
	}
	path, err := buildBig(t.Context(), src, units, routines)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path)
	cmd.Stdin = strings.NewReader("1\n2\n3\n")
	out, err := cmd.Output()
	if err != nil || len(strings.Fields(string(out))) != 3 {
		t.Errorf("%q, %v", out, err)
	}
	again, err := buildBig(t.Context(), filepath.Join(dir, "elsewhere", "big.c"), units, routines)
	if err != nil || again != path {
		t.Errorf("it is built again: %s, %v", again, err)
	}
}
