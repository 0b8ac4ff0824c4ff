package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"wpptrace/kernel-tests/production/load"
)

// A Server can be started.
type Server interface {
	Name() string
	// Needs are the commands that it takes, each with the Debian package that has it, as
	// COMMAND:PACKAGE.
	Needs() []string
	// Start starts it in an empty directory, which is the caller's to remove after Stop. It takes
	// some seconds.
	Start(ctx context.Context, dir string) (*Running, error)
}

// A Running server is one that has been started.
type Running struct {
	PID     int           // of the process that does the work, as far as one does
	Clients []load.Client // of that process; the caller's, to be closed before Stop
	Others  []load.Client // of others that work at the same time; the caller's, too
	process *process
}

// Stop ends it, and all that it has started. It takes some seconds at most.
func (r *Running) Stop() error { return r.process.stop() }

// All lists the servers.
func All() []Server {
	return []Server{redis{}, nginx{}, memcached{}, postgres{backends: 1}, postgres{backends: 8},
		python, libpython, perl, node, jvm, cxx, rust, firefox{}, big}
}

// Find finds servers by their names.
func Find(names []string) (list []Server, err error) {
	for _, name := range names {
		found := false
		for _, s := range All() {
			if s.Name() == name {
				list, found = append(list, s), true
			}
		}
		if !found {
			var known []string
			for _, s := range All() {
				known = append(known, s.Name())
			}
			return nil, fmt.Errorf("find server %q: there is none of that name: use some of %s",
				name, strings.Join(known, ", "))
		}
	}
	return list, nil
}

// ErrMissing is the error of a server that is not installed.
var ErrMissing = errors.New("not installed")

// Missing says what is not installed that a server takes, and how to install it; nil: nothing.
func Missing(s Server) error {
	var packages []string
	for _, need := range s.Needs() {
		command, pkg, _ := strings.Cut(need, ":")
		if _, err := find(command); err != nil {
			packages = append(packages, pkg)
		}
	}
	if len(packages) == 0 {
		return nil
	}
	return fmt.Errorf("start %s: %w: apt-get install %s", s.Name(), ErrMissing,
		strings.Join(packages, " "))
}

// find finds a command of the distribution, which others of that name in PATH do not hide.
func find(command string) (string, error) {
	for _, dir := range []string{"/usr/bin", "/usr/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, command)); err == nil {
			return path, nil
		}
	}
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + command); len(found) > 0 {
		return found[len(found)-1], nil
	}
	return exec.LookPath(command)
}

// freePort is a port of the loopback interface that nothing listens on. Somebody else may take it
// before it is used: the server fails to start then.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}

// write writes a file of a server into its directory.
func write(dir, name string, text []byte) (string, error) {
	path := filepath.Join(dir, name)
	return path, os.WriteFile(path, text, 0o644)
}
