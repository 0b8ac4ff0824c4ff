package recovery_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"wpptrace/loader/cfg"
)

// A checkSite is a bounds check of a table, in a running program.
type checkSite struct {
	name  string
	r     *cfg.Routine
	table int    // the block that the table's jump ends
	leads uint64 // where the check goes when the index is within bounds
}

// checkSites returns the checks of a program by the address of their conditional jump.
func checkSites(t *testing.T, p *cfg.Program) map[uint64]checkSite {
	out := map[uint64]checkSite{}
	for _, r := range p.Routines {
		for b := range r.Blocks {
			table := r.Blocks[b].Table
			if table == nil || table.Check < 0 {
				continue
			}
			at := b
			for preds := predecessors(r, at); preds[0] != table.Check; preds = predecessors(r, at) {
				if at = preds[0]; len(preds) != 1 {
					t.Fatalf("%s: block %d between check and jump has predecessors %v", r.Name, at,
						preds)
				}
			}
			check := &r.Blocks[table.Check]
			out[check.Insns[len(check.Insns)-1].Addr] = checkSite{r.Name, r, b, r.Blocks[at].Lo}
		}
	}
	return out
}

func predecessors(r *cfg.Routine, b int) (out []int) {
	for p := range r.Blocks {
		if slices.Contains(r.Blocks[p].Succ, b) {
			out = append(out, p)
		}
	}
	return out
}

// TestChecks runs programs under ptrace, and compares what a table's check says about the way at
// the conditional jump with the way that the program then takes.
func TestChecks(t *testing.T) {
	for _, test := range []struct {
		flags []string
		sites int // at least
	}{
		{[]string{"-O0", "-fPIE", "-pie"}, 11},
		{[]string{"-O1", "-fno-pie", "-no-pie"}, 11},
		{[]string{"-O2", "-fPIE", "-pie"}, 11},
		{[]string{"-Os", "-fno-pie", "-no-pie"}, 11},
	} {
		t.Run(strings.Join(test.flags, " "), func(t *testing.T) {
			path := compileFile(t, "switches/all.c", test.flags...)
			sites := checkSites(t, recoverFile(t, path))
			if len(sites) < test.sites {
				t.Errorf("%d checks, want %d or more", len(sites), test.sites)
			}
			for name, way := range traceChecks(t, path, sites) {
				if name == "dense" && (way[0] == 0 || way[1] == 0) {
					t.Errorf("%s: %d times within bounds, %d times beyond: the test needs both",
						name, way[0], way[1])
				}
			}
		})
	}
}

// traceChecks runs the program and returns how often each check was passed within bounds and
// beyond.
func traceChecks(t *testing.T, path string, sites map[uint64]checkSite) map[string]*[2]int {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.Command(path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		t.Skipf("needs ptrace: %v", err)
	}
	pid := cmd.Process.Pid
	defer func() {
		syscall.Kill(pid, syscall.SIGKILL)
		cmd.Wait()
	}()
	tr := &tracee{t: t, pid: pid}
	if tr.wait().Exited() {
		t.Fatal("program did not start")
	}
	tr.base = loadBase(t, pid, path)
	breakpoints := map[uint64][]byte{}
	for at := range sites {
		breakpoints[at] = tr.peek(at+tr.base, 1)
		tr.poke(at+tr.base, []byte{0xcc})
	}
	ways := map[string]*[2]int{}
	for {
		tr.check(syscall.PtraceCont(pid, 0))
		if tr.wait().Exited() {
			return ways
		}
		regs := tr.registers()
		at := regs.Rip - 1 - tr.base
		site, ok := sites[at]
		if !ok {
			t.Fatalf("stopped at %x", regs.Rip)
		}
		if ways[site.name] == nil {
			ways[site.name] = new([2]int)
		}
		regs.Rip--
		tr.check(syscall.PtraceSetRegs(pid, &regs))
		tr.poke(regs.Rip, breakpoints[at])
		ways[site.name][tr.follow(site, &regs)]++
		tr.poke(at+tr.base, []byte{0xcc})
	}
}

// A tracee is the program under test. All is done from one thread.
type tracee struct {
	t    *testing.T
	pid  int
	base uint64
}

// follow lets the program run from a check to where it leads, compares, and returns 0 within
// bounds, 1 beyond.
func (tr *tracee) follow(site checkSite, regs *syscall.PtraceRegs) int {
	table := site.r.Blocks[site.table].Table
	position := tr.position(table, regs)
	pc := tr.step()
	if pc != site.leads {
		if position < uint64(len(table.Targets)) {
			tr.t.Fatalf("%s: position %d of %d, but the check leads to %x", site.name, position,
				len(table.Targets), pc)
		}
		return 1
	}
	jump := site.r.Blocks[site.table].Insns
	for pc != jump[len(jump)-1].Addr {
		pc = tr.step()
	}
	pc = tr.step()
	if position >= uint64(len(table.Targets)) || site.r.Blocks[table.Targets[position]].Lo != pc {
		tr.t.Fatalf("%s: position %d of %d, but the jump leads to %x", site.name, position,
			len(table.Targets), pc)
	}
	return 0
}

// position evaluates a table's index as its documentation says.
func (tr *tracee) position(table *cfg.JumpTable, regs *syscall.PtraceRegs) uint64 {
	all := []uint64{regs.Rax, regs.Rcx, regs.Rdx, regs.Rbx, regs.Rsp, regs.Rbp, regs.Rsi, regs.Rdi,
		regs.R8, regs.R9, regs.R10, regs.R11, regs.R12, regs.R13, regs.R14, regs.R15}
	var v uint64
	if table.Index.Mem {
		v = binary.LittleEndian.Uint64(tr.peek(all[table.Index.Base]+uint64(table.Index.Disp), 8))
	} else {
		v = all[table.Index.Reg]
	}
	shift := 64 - 8*table.Index.Size
	return (v<<shift>>shift + uint64(table.Bias)) << shift >> shift
}

func (tr *tracee) check(err error) {
	tr.t.Helper()
	if err != nil {
		tr.t.Fatalf("ptrace: %v", err)
	}
}

func (tr *tracee) wait() (status syscall.WaitStatus) {
	tr.t.Helper()
	_, err := syscall.Wait4(tr.pid, &status, 0, nil)
	tr.check(err)
	if !status.Exited() && (!status.Stopped() || status.StopSignal() != syscall.SIGTRAP) {
		tr.t.Fatalf("program ended by %v", status)
	}
	return status
}

// step executes one instruction and returns the link-time address of the next.
func (tr *tracee) step() uint64 {
	tr.check(syscall.PtraceSingleStep(tr.pid))
	tr.wait()
	regs := tr.registers()
	return regs.Rip - tr.base
}

func (tr *tracee) registers() (regs syscall.PtraceRegs) {
	tr.check(syscall.PtraceGetRegs(tr.pid, &regs))
	return regs
}

func (tr *tracee) peek(at uint64, n int) []byte {
	b := make([]byte, n)
	_, err := syscall.PtracePeekData(tr.pid, uintptr(at), b)
	tr.check(err)
	return b
}

func (tr *tracee) poke(at uint64, b []byte) {
	_, err := syscall.PtracePokeData(tr.pid, uintptr(at), b)
	tr.check(err)
}

// loadBase returns what the kernel added to the program's link-time addresses.
func loadBase(t *testing.T, pid int, path string) uint64 {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(maps)) {
		var lo, hi, offset uint64
		var perm string
		if n, _ := fmt.Sscanf(line, "%x-%x %s %x", &lo, &hi, &perm, &offset); n == 4 &&
			offset == 0 && strings.Contains(line, path) {
			if lo < 0x10000000 { // not position independent
				return 0
			}
			return lo
		}
	}
	t.Fatalf("%s is not mapped", path)
	return 0
}
