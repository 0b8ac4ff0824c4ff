package vm

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// A Machine is a computer that boots a kernel, runs one command as root and is switched off.
type Machine struct {
	Kernel string // path of the image
	// that it has at the same paths as we, directories whole, programs with the libraries that they
	// need
	Files   []string
	Command []string
	Env     []string
}

// Order is what the machine's first process finds in OrderFile: what to do.
type Order struct{ Command, Env []string }

// OrderFile is where.
const OrderFile = "/order.json"

// Ended is what the machine's first process writes when the command has ended, before the exit
// status.
const Ended = "vm: exit status "

// Run boots the machine and hands on what the command prints, standard error included, line by
// line. It returns the exit status. That the kernel panicked, or complained of itself, that the
// machine stopped otherwise and that ctx was done before the command had ended are errors. Cost: 3
// s, for the machine is emulated, and all that runs in it is 10 to 50 times slower.
func (m *Machine) Run(ctx context.Context, line func(text string)) (status int, err error) {
	dir, err := os.MkdirTemp("", "vm")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	files := filepath.Join(dir, "initramfs")
	if err := m.pack(ctx, filepath.Join(dir, "tree"), files); err != nil {
		return 0, err
	}
	console := filepath.Join(dir, "console")
	status, err = m.boot(ctx, files, console, line)
	text, readErr := os.ReadFile(console)
	if err = errors.Join(err, readErr, complaint(string(text))); err != nil {
		return 0, fmt.Errorf("run %s on %s: %w", filepath.Base(m.Command[0]),
			filepath.Base(m.Kernel), err)
	}
	return status, nil
}

// pack makes the machine's files.
func (m *Machine) pack(ctx context.Context, dir, to string) error {
	t, err := newTree(dir)
	if err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", t.at("init"),
		"wpptrace/kernel-tests/vm/cmd/init")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the first process of a machine: %w\n%s", err, out)
	}
	for _, f := range m.Files {
		if err := t.add(ctx, f); err != nil {
			return err
		}
	}
	order, err := json.Marshal(Order{m.Command, m.Env})
	if err != nil {
		return err
	}
	if err := os.WriteFile(t.at(OrderFile), order, 0o644); err != nil {
		return err
	}
	return t.pack(ctx, to)
}

// boot returns when the machine is off. What the kernel has to say goes to its first serial line,
// the console, what the command says to the second. The processor lacks cmpxchg16b, which QEMU 7.2
// emulates so that it spoils the flags at times: kernels die of it.
func (m *Machine) boot(ctx context.Context, files, console string,
	line func(string)) (status int, err error) {
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", "-accel", "tcg", "-cpu", "max,-cx16",
		"-smp", "1", "-m", "3072", "-nodefaults", "-display", "none", "-no-reboot",
		"-kernel", m.Kernel, "-initrd", files, "-serial", "file:"+console, "-serial", "stdio",
		"-append", "console=ttyS0 loglevel=5 panic=-1 oops=panic rdinit=/init mitigations=off")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	status, ended := relay(out, line)
	err = cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return 0, fmt.Errorf("it was at it still: %w", ctx.Err())
	case err != nil:
		return 0, fmt.Errorf("%w: %s", err, &stderr)
	case !ended:
		return 0, errors.New("the machine went off before the command had ended")
	}
	return status, nil
}

// relay hands on the lines that the command prints, until the one with its exit status.
func relay(r io.Reader, line func(string)) (status int, ended bool) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		text := strings.TrimRight(lines.Text(), "\r")
		if number, ok := strings.CutPrefix(text, Ended); ok {
			n, err := strconv.Atoi(number)
			status, ended = n, err == nil
			continue
		}
		line(text)
	}
	return status, ended
}

// wrong is what a kernel says of itself when something is wrong with it, or with us.
var wrong = regexp.MustCompile(`(?m)^.*(Kernel panic|BUG:|WARNING:|Oops|general protection|blocked for more than|rcu: INFO|failed to unregister, leaking).*$`)

// complaint finds that on the console.
func complaint(console string) error {
	const most = 1500 // bytes
	at := wrong.FindStringIndex(console)
	if at == nil {
		return nil
	}
	return fmt.Errorf("the kernel complains:\n%s", console[at[0]:min(len(console), at[0]+most)])
}
