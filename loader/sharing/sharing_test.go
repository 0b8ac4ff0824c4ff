package sharing

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"wpptrace/internal/testenv"
	"wpptrace/loader/target"
)

// A program maps what it is asked to.
type program struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Scanner
	*target.Process
}

func start(t *testing.T) *program {
	t.Helper()
	code, err := os.ReadFile("testdata/maps.c")
	if err != nil {
		t.Fatal(err)
	}
	path := testenv.CompileC(t, string(code), "-pthread")
	c := exec.CommandContext(t.Context(), path, "testdata/maps.c")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
	})
	p := &program{t: t, in: in, out: bufio.NewScanner(out)}
	p.ask("nothing") // it has been loaded
	if p.Process, err = target.Open(c.Process.Pid); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// ask returns where it has mapped something.
func (p *program) ask(what string) (addr uint64) {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.in, what); err != nil {
		p.t.Fatal(err)
	}
	if !p.out.Scan() {
		p.t.Fatalf("%s: %v", what, p.out.Err())
	}
	if _, err := fmt.Sscanf(p.out.Text(), "%x", &addr); err != nil {
		p.t.Fatal(err)
	}
	return addr
}

// follow follows the program.
func (p *program) follow() *Memory {
	return p.followWith(func() ([]Area, bool) { return nil, true })
}

// followWith follows it, with areas of restartable sequences.
func (p *program) followWith(sequences func() ([]Area, bool)) *Memory {
	p.t.Helper()
	m, err := Follow(p.Process, sequences)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(m.Close)
	return m
}

// TestSharing: what others may write is known, whether it was mapped before or after the process is
// followed, though it be read-only, or be gone.
func TestSharing(t *testing.T) {
	p := start(t)
	type mapped struct {
		what string
		addr uint64
	}
	var all []mapped
	do := func() {
		for _, what := range []string{"private", "shared", "moved", "read", "file", "segment"} {
			all = append(all, mapped{what, p.ask(what)})
		}
	}
	do()
	m := p.follow()
	do()
	all = append(all, mapped{"gone", p.ask("gone")})
	time.Sleep(betweenLooks + time.Millisecond) // for what has been moved
	if m.Update() {
		t.Error("others are said to write anywhere")
	}
	for _, x := range all {
		if got, want := m.Holds(x.addr+4088, 8), x.what != "private"; got != want {
			t.Errorf("%s, %x: %v", x.what, x.addr, got)
		}
	}
	if m.Holds(codeOf(t, p), 8) || m.Holds(p.ask("protect"), 8) || m.Update() ||
		m.Holds(p.ask("protect"), 8) {
		t.Error("a program's own file is taken for one that changes")
	}
}

// codeOf is where the program's code is.
func codeOf(t *testing.T, p *program) uint64 {
	t.Helper()
	list, err := p.ExecutableMappings()
	if err != nil || len(list) == 0 {
		t.Fatal(err)
	}
	return list[0].Lo
}

// TestThreads: threads write anywhere, whether they began before or after the process is followed.
func TestThreads(t *testing.T) {
	p := start(t)
	before := p.follow()
	if before.Update() {
		t.Error("without threads others are said to write anywhere")
	}
	p.ask("thread")
	for range 2 {
		if !before.Update() {
			t.Error("a thread that has begun is not found")
		}
	}
	if !p.follow().Update() {
		t.Error("a thread that was there is not found")
	}
}

// TestSequences: others write to areas of restartable sequences, once these are known, to no byte
// beside them, and anywhere where these are not all.
func TestSequences(t *testing.T) {
	var areas []Area
	isWhole := true
	m := start(t).followWith(func() ([]Area, bool) { return areas, isWhole })
	if m.Update() || m.Holds(0x1020, 32) {
		t.Error("others write where there is no area yet")
	}
	areas = []Area{{Addr: 0x1020, Size: 32}, {Addr: 0x2000, Size: 20}}
	if m.Update() || !m.Holds(0x1020, 1) || !m.Holds(0x103f, 8) || !m.Holds(0x2013, 1) ||
		m.Holds(0x1018, 8) || m.Holds(0x1040, 8) || m.Holds(0x2014, 4) {
		t.Error("others do not write to the areas, or elsewhere")
	}
	isWhole = false
	if !m.Update() {
		t.Error("areas that are not all are taken for whole")
	}
}

// TestText: code that is other than it was is found, but for breakpoints of probes, and so is what
// could be written, though it be as before.
func TestText(t *testing.T) {
	p := start(t)
	code, constant := p.ask("code"), p.ask("protect")&^0xfff
	read := func(addr uint64) []byte {
		b := make([]byte, 16)
		if err := p.ReadMemory(b, addr); err != nil {
			t.Fatal(err)
		}
		return b
	}
	m := p.follow()
	before, same := read(code), read(constant)
	isRewritten := func(addr uint64, file []byte, probe int) bool {
		t.Helper()
		if m.Update() {
			t.Fatal("others write anywhere")
		}
		return m.Text().IsRewritten(addr, file, func(at int) bool { return at == probe })
	}
	if isRewritten(code, before, -1) || isRewritten(constant, same, -1) {
		t.Error("what is as it was is said to be rewritten")
	}
	p.ask("break")
	if isRewritten(code, before, 0) || !isRewritten(code, before, 1) {
		t.Error("a breakpoint is one where a probe goes, and nowhere else")
	}
	called := append([]byte{0x0f, 0x1f, 0x44, 0, 0}, read(code)[5:]...)
	if isRewritten(code, called, 0) || !isRewritten(code, called, 1) {
		t.Error("a call is the kernel's in place of what does nothing where a probe goes alone")
	}
	p.ask("protect")
	if !isRewritten(constant, same, -1) {
		t.Error("what could be written is not found")
	}
}

// TestQueues: the kernel writes anywhere for a process that has a queue of requests, whether it has
// that before or after it is followed.
func TestQueues(t *testing.T) {
	for _, what := range []string{"queue", "requests"} {
		t.Run(what, func(t *testing.T) {
			if err := isForbidden(what); err != nil {
				t.Skipf("this machine forbids it: %v", err)
			}
			p := start(t)
			before := p.follow()
			if before.Update() {
				t.Error("without it others are said to write anywhere")
			}
			if at := p.ask(what); at == 0 || at == ^uint64(0) {
				t.Fatal("the program got none")
			}
			for range 2 {
				if !before.Update() {
					t.Error("it is not found once it is made")
				}
			}
			if !p.follow().Update() {
				t.Error("it is not found where it was there")
			}
		})
	}
}

// isForbidden says why the kernel gives no process such a queue: io_uring may be switched off, for
// all (kernel.io_uring_disabled) or in a container; so may aio, or the kernel have none.
func isForbidden(what string) error {
	call := uintptr(unix.SYS_IO_URING_SETUP)
	if what == "requests" {
		call = unix.SYS_IO_SETUP
	}
	// without entries and parameters, it fails with EINVAL or EFAULT where it is allowed
	if _, _, err := unix.Syscall(call, 0, 0, 0); err == unix.EPERM || err == unix.ENOSYS {
		return err
	}
	return nil
}

// TestManyMappings: where too much is mapped between two looks, others may write anywhere.
func TestManyMappings(t *testing.T) {
	p := start(t)
	m := p.follow()
	for range ringSize / 80 {
		p.ask("gone")
	}
	if !m.Update() {
		t.Error("what was lost is taken for whole")
	}
}

// TestManyFiles: of a process that maps file after file no more is noted than the places that it
// maps them at, and these are known.
func TestManyFiles(t *testing.T) {
	m := &Memory{noted: map[mapping]bool{}}
	for inode := range uint64(4 * mostNoted) {
		at := inode % 8 << 12
		m.note(mapping{place: place{at, at + 4096}, file: file{inode: 1 + inode}, write: at > 0})
	}
	m.arrange()
	if n := len(m.noted); n <= mostNoted || n > mostNoted+9 {
		t.Errorf("%d mappings are noted", n)
	}
	if !m.Holds(0, 1) || !m.Holds(8<<12-1, 1) || m.Holds(8<<12, 1) {
		t.Errorf("others write to %x", m.places)
	}
	const code = 4096
	if is := m.Text().IsRewritten; !is(code, []byte{1}, nil) {
		t.Error("code that could be written is not found")
	}
}
