package server

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

type nginx struct{}

func (nginx) Name() string    { return "nginx" }
func (nginx) Needs() []string { return []string{"nginx:nginx-light"} }

// nginxConf has one worker, which is the one that is traced.
const nginxConf = `daemon off;
worker_processes 1;
error_log %[1]s/errors;
pid %[1]s/pid;
events { worker_connections 64; }
http {
	access_log off;
	client_body_temp_path %[1]s/a;
	proxy_temp_path %[1]s/b;
	fastcgi_temp_path %[1]s/c;
	uwsgi_temp_path %[1]s/d;
	scgi_temp_path %[1]s/e;
	keepalive_requests 1000000000;
	server {
		listen 127.0.0.1:%[2]s;
		root %[1]s/www;
		location /moved/ { return 301 /page.html; }
		location ~ ^/text/(.*)$ { return 200 "$1 $request_uri $arg_a\n"; }
	}
}
`

func (nginx) Start(ctx context.Context, dir string) (*Running, error) {
	path, err := find("nginx")
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	www := filepath.Join(dir, "www")
	err = errors.Join(os.Mkdir(www, 0o755),
		os.WriteFile(filepath.Join(www, "page.html"), bytes.Repeat([]byte("page\n"), 200), 0o644))
	if err != nil {
		return nil, err
	}
	conf, err := write(dir, "conf", fmt.Appendf(nil, nginxConf, dir, port))
	if err != nil {
		return nil, err
	}
	p, err := start(exec.Command(path, "-c", conf, "-p", dir), dir, nil)
	if err != nil {
		return nil, err
	}
	r, err := running(ctx, p, connections, func() (*web, error) { return dialWeb("127.0.0.1:" + port) })
	if err != nil {
		return nil, err
	}
	if r.PID, err = onlyChild(p.cmd.Process.Pid); err != nil {
		r.close()
		return nil, errors.Join(err, p.stop())
	}
	return r, nil
}

// onlyChild is the only child of a process.
func onlyChild(pid int) (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return 0, err
	}
	children := strings.Fields(string(text))
	if len(children) != 1 {
		return 0, fmt.Errorf("find the worker of process %d: it has %d children", pid, len(children))
	}
	return strconv.Atoi(children[0])
}

// A web is a connection that stays open and asks for several pages in turn.
type web struct {
	conn net.Conn
	in   *bufio.Reader
	turn int
}

var webPages = []string{"/page.html", "/text/abc?a=1", "/page.html", "/moved/x", "/none.html"}

func dialWeb(address string) (*web, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	w := &web{conn: conn, in: bufio.NewReaderSize(conn, 1<<16)}
	if err := w.Ask(); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return w, nil
}

// Ask reads just as much of the answer as it takes to find its end: net/http would take longer than
// the server.
func (w *web) Ask() error {
	page := webPages[w.turn%len(webPages)]
	w.turn++
	if _, err := io.WriteString(w.conn, "GET "+page+
		" HTTP/1.1\r\nHost: localhost\r\nUser-Agent: production\r\nAccept: */*\r\n\r\n"); err != nil {
		return err
	}
	length := -1
	for first := true; ; first = false {
		line, err := w.in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if first && !bytes.HasPrefix(line, []byte("HTTP/1.1 ")) {
			return fmt.Errorf("%s was answered by %q", page, line)
		}
		if n, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(n))); err != nil {
				return err
			}
		}
		if len(bytes.TrimSpace(line)) == 0 {
			break
		}
	}
	if length < 0 {
		return fmt.Errorf("%s was answered without a length", page)
	}
	_, err := w.in.Discard(length)
	return err
}

func (w *web) Close() error { return w.conn.Close() }
