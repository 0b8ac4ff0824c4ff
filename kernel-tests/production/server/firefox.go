package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A firefox shows a page without a screen; the page works, and asks for the next piece of work when
// it has done one. The process that runs the page is traced.
type firefox struct{}

func (firefox) Name() string    { return "firefox" }
func (firefox) Needs() []string { return []string{"firefox-esr:firefox-esr"} }

func (firefox) Start(ctx context.Context, dir string) (*Running, error) {
	path, err := find("firefox-esr")
	if err != nil {
		return nil, err
	}
	page, err := sources.ReadFile("src/busy.html")
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for firefox: %w", err)
	}
	t := &tab{asked: make(chan struct{}), reply: make(chan struct{}), closed: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(page) })
	mux.HandleFunc("/next", t.next)
	web := &http.Server{Handler: mux}
	go func() { _ = web.Serve(l) }()
	cmd := exec.Command(path, "--headless", "--no-remote", "--profile", dir,
		"http://"+l.Addr().String()+"/")
	cmd.Env = append(os.Environ(), "HOME="+dir, "MOZ_CRASHREPORTER_DISABLE=1")
	p, err := start(cmd, dir, nil)
	if err != nil {
		return nil, errors.Join(err, web.Close())
	}
	p.also = append(p.also, func() { _ = web.Close() })
	fail := func(err error) (*Running, error) { return nil, errors.Join(err, t.Close(), p.stop()) }
	for range 50 { // the first ones come when firefox is up
		if err := t.Ask(); err != nil {
			return fail(err)
		}
	}
	r, err := running(ctx, p, 1, func() (*tab, error) { return t, nil })
	if err != nil {
		return nil, err
	}
	work, over := make(chan struct{}), make(chan struct{})
	go func() { // else all of them sleep
		defer close(over)
		for t.Ask() == nil {
			select {
			case <-work:
				return
			default:
			}
		}
	}()
	r.PID, err = connected(ctx, p, func() (int, error) { return busiestChild(p.cmd.Process.Pid) })
	close(work)
	<-over
	if err != nil {
		return fail(err)
	}
	return r, nil
}

// A tab is a page that asks: its requests are the answers.
type tab struct{ asked, reply, closed chan struct{} }

func (t *tab) next(http.ResponseWriter, *http.Request) {
	select {
	case t.asked <- struct{}{}:
	case <-t.closed:
		return
	}
	select {
	case <-t.reply:
	case <-t.closed:
	}
}

func (t *tab) Ask() error {
	select {
	case <-t.asked:
	case <-t.closed:
		return errors.New("closed")
	case <-time.After(2 * time.Minute):
		return errors.New("the page has not asked for two minutes")
	}
	select {
	case t.reply <- struct{}{}:
	case <-t.closed:
	}
	return nil
}

func (t *tab) Close() error { close(t.closed); return nil }

// busiestChild is the descendant of a process that uses the most CPU time in half a second.
func busiestChild(pid int) (int, error) {
	used := func() map[int]int {
		m := map[int]int{}
		dirs, _ := filepath.Glob("/proc/[0-9]*/stat")
		parents, times := map[int]int{}, map[int]int{}
		for _, file := range dirs {
			text, err := os.ReadFile(file)
			if err != nil {
				continue // it has ended
			}
			id, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
			user, _ := strconv.Atoi(f[11])
			kernel, _ := strconv.Atoi(f[12])
			parents[id], _ = strconv.Atoi(f[1])
			times[id] = user + kernel
		}
		for id := range times {
			for up := parents[id]; up > 1; up = parents[up] {
				if up == pid {
					m[id] = times[id]
				}
			}
		}
		return m
	}
	before := used()
	time.Sleep(500 * time.Millisecond)
	best, most := 0, 0
	for id, time := range used() {
		if d := time - before[id]; d > most {
			best, most = id, d
		}
	}
	if best == 0 {
		return 0, fmt.Errorf("find what firefox runs its page in: no child of process %d works", pid)
	}
	return best, nil
}
