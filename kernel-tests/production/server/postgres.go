package server

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"

	"wpptrace/kernel-tests/production/load"
)

// A postgres serves that many clients, each by a backend, of which one is traced.
type postgres struct{ backends int }

func (p postgres) Name() string {
	if p.backends == 1 {
		return "postgres"
	}
	return "postgres-many"
}

func (postgres) Needs() []string {
	return []string{"postgres:postgresql", "initdb:postgresql", "pgbench:postgresql"}
}

func (p postgres) Start(ctx context.Context, dir string) (*Running, error) {
	who, err := credential("postgres")
	if err != nil {
		return nil, err
	}
	if err := os.Chown(dir, int(who.Uid), int(who.Gid)); err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	data := dir + "/data"
	if err := as(ctx, who, dir, "initdb", "-D", data, "-A", "trust", "--no-sync", "-U",
		"postgres"); err != nil {
		return nil, err
	}
	path, err := find("postgres")
	if err != nil {
		return nil, err
	}
	main, err := start(exec.Command(path, "-D", data, "-p", port, "-k", dir, "-h", "127.0.0.1",
		"-c", "fsync=off", "-c", "autovacuum=off", "-c", "max_parallel_workers=0"), dir, who)
	if err != nil {
		return nil, err
	}
	fail := func(err error) (*Running, error) { return nil, errors.Join(err, main.stop()) }
	fill := func() (struct{}, error) {
		return struct{}{}, as(ctx, who, dir, "pgbench", "-h", "127.0.0.1", "-p", port, "-U",
			"postgres", "-i", "-q", "-s", strconv.Itoa(pgScale), "postgres")
	}
	if _, err := connected(ctx, main, fill); err != nil {
		return fail(err)
	}
	r, err := running(ctx, main, p.backends, func() (*pgConn, error) { return dialPG("127.0.0.1:" + port) })
	if err != nil {
		return nil, err
	}
	r.PID = r.Clients[0].(*pgConn).pid
	r.Clients, r.Others = r.Clients[:1:1], r.Clients[1:]
	return r, nil
}

// credential is of a user, as whom a server runs that refuses root; nil: who runs this is not root.
func credential(name string) (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return nil, err
	}
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(err1, err2)
}

// as runs a command to its end.
func as(ctx context.Context, who *syscall.Credential, dir, command string, args ...string) error {
	path, err := find(command)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", command, err, out)
	}
	return nil
}

// pgScale is that of pgbench: so many times 100,000 rows.
const pgScale = 5

// A pgConn is a connection in version 3 of the protocol, which asks what pgbench -S does.
type pgConn struct {
	conn net.Conn
	in   *bufio.Reader
	pid  int // of the backend
	turn int
}

var _ load.Client = (*pgConn)(nil)

func dialPG(address string) (*pgConn, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	c := &pgConn{conn: conn, in: bufio.NewReaderSize(conn, 1<<16)}
	const version = 3 << 16
	hello := binary.BigEndian.AppendUint32(nil, version)
	hello = append(hello, "user\x00postgres\x00database\x00postgres\x00\x00"...)
	if err = c.send(0, hello); err == nil {
		err = c.untilReady()
	}
	if err == nil {
		err = c.Ask()
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return c, nil
}

// send sends a message of a kind; 0: the first one, which has none.
func (c *pgConn) send(kind byte, body []byte) error {
	var m []byte
	if kind != 0 {
		m = append(m, kind)
	}
	m = binary.BigEndian.AppendUint32(m, uint32(4+len(body)))
	_, err := c.conn.Write(append(m, body...))
	return err
}

// untilReady reads messages until the server waits for the next query.
func (c *pgConn) untilReady() error {
	for {
		head, err := c.in.Peek(5)
		if err != nil {
			return err
		}
		kind, length := head[0], int(binary.BigEndian.Uint32(head[1:]))-4
		if _, err := c.in.Discard(5); err != nil {
			return err
		}
		body := make([]byte, length)
		if _, err := io.ReadFull(c.in, body); err != nil {
			return err
		}
		switch kind {
		case 'E':
			return fmt.Errorf("postgres: %q", body)
		case 'K':
			c.pid = int(binary.BigEndian.Uint32(body))
		case 'Z':
			return nil
		}
	}
}

func (c *pgConn) Ask() error {
	c.turn++
	const prime = 7919
	row := 1 + c.turn*prime%(pgScale*100_000)
	err := c.send('Q', fmt.Appendf(nil, "SELECT abalance FROM pgbench_accounts WHERE aid = %d;\x00",
		row))
	if err != nil {
		return err
	}
	return c.untilReady()
}

func (c *pgConn) Close() error { return c.conn.Close() }
