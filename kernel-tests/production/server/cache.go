package server

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
)

// A lines is a connection that asks for one of several things in turn. An answer is checked by its
// beginning, and may have further lines.
type lines struct {
	conn  net.Conn
	in    *bufio.Reader
	turn  int
	asked []exchange
}

// An exchange is a request and what its answer is like.
type exchange struct {
	request string
	prefix  string // of the answer's first line
	body    bool   // that line ends in the length of a body, which a line end follows
	last    string // of the answer's lines where there are several; "": there is one
}

func (l *lines) Ask() error {
	x := &l.asked[l.turn%len(l.asked)]
	l.turn++
	if _, err := l.conn.Write([]byte(x.request)); err != nil {
		return err
	}
	line, err := l.in.ReadSlice('\n')
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(line, []byte(x.prefix)) {
		return fmt.Errorf("%q was answered by %q", x.request, line)
	}
	if x.body {
		fields := bytes.FieldsFunc(line, func(r rune) bool { return r <= ' ' || r == '$' })
		n, err := strconv.Atoi(string(fields[len(fields)-1]))
		if err != nil {
			return fmt.Errorf("%q was answered by %q: %w", x.request, line, err)
		}
		if _, err := l.in.Discard(n + len("\r\n")); err != nil {
			return err
		}
	}
	for x.last != "" && !bytes.HasPrefix(line, []byte(x.last)) {
		if line, err = l.in.ReadSlice('\n'); err != nil {
			return err
		}
	}
	return nil
}

func (l *lines) Close() error { return l.conn.Close() }

// dial connects, and asks each thing once, so that what is to be there is.
func dial(address string, asked []exchange) (*lines, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	l := &lines{conn: conn, in: bufio.NewReaderSize(conn, 1<<16), asked: asked}
	for range asked {
		if err := l.Ask(); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	return l, nil
}

// connections is how many clients a server has that serves several.
const connections = 8

type redis struct{}

func (redis) Name() string    { return "redis" }
func (redis) Needs() []string { return []string{"redis-server:redis-server"} }

func (redis) Start(ctx context.Context, dir string) (*Running, error) {
	path, err := find("redis-server")
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	p, err := start(exec.Command(path, "--port", port, "--bind", "127.0.0.1", "--save", "",
		"--appendonly", "no", "--dir", dir), dir, nil)
	if err != nil {
		return nil, err
	}
	client := 0
	return running(ctx, p, connections, func() (*lines, error) {
		client++
		return dial("127.0.0.1:"+port, redisAsks(client))
	})
}

// redisAsks are the commands of one client, of several kinds, most of them simple, as in
// redis-benchmark.
func redisAsks(client int) (list []exchange) {
	command := func(words ...string) string {
		var b strings.Builder
		fmt.Fprintf(&b, "*%d\r\n", len(words))
		for _, w := range words {
			fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
		}
		return b.String()
	}
	for i := range 16 {
		key := fmt.Sprintf("key:%d:%d", client, i)
		value := strings.Repeat("v", 16<<(i%4))
		list = append(list,
			exchange{request: command("SET", key, value), prefix: "+OK"},
			exchange{request: command("GET", key), prefix: "$", body: true},
			exchange{request: command("INCR", "counter"), prefix: ":"},
			exchange{request: command("HSET", "hash", key, value), prefix: ":"},
			exchange{request: command("HGET", "hash", key), prefix: "$", body: true},
			exchange{request: command("LPUSH", "list", value), prefix: ":"},
			exchange{request: command("LTRIM", "list", "0", "99"), prefix: "+OK"},
			exchange{request: command("ZADD", "board", strconv.Itoa(i), key), prefix: ":"})
	}
	return list
}

type memcached struct{}

func (memcached) Name() string    { return "memcached" }
func (memcached) Needs() []string { return []string{"memcached:memcached"} }

func (memcached) Start(ctx context.Context, dir string) (*Running, error) {
	path, err := find("memcached")
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	p, err := start(exec.Command(path, "-u", "nobody", "-l", "127.0.0.1", "-p", port, "-U", "0",
		"-m", "64"), dir, nil)
	if err != nil {
		return nil, err
	}
	client := 0
	return running(ctx, p, connections, func() (*lines, error) {
		client++
		return dial("127.0.0.1:"+port, memcachedAsks(client))
	})
}

func memcachedAsks(client int) (list []exchange) {
	for i := range 16 {
		key := fmt.Sprintf("key:%d:%d", client, i)
		value := strings.Repeat("v", 16<<(i%4))
		set := fmt.Sprintf("set %s 0 0 %d\r\n%s\r\n", key, len(value), value)
		get := exchange{request: "get " + key + "\r\n", prefix: "VALUE", body: true, last: "END"}
		number := fmt.Sprintf("n:%d", client)
		list = append(list, exchange{request: set, prefix: "STORED"}, get, get, get,
			exchange{request: "set " + number + " 0 0 1\r\n1\r\n", prefix: "STORED"},
			exchange{request: "incr " + number + " 3\r\n", prefix: "4"},
			exchange{request: "delete " + number + "\r\n", prefix: "DELETED"},
			exchange{request: "get nothing\r\n", prefix: "END"})
	}
	return list
}
