package recovery_test

import (
	"bytes"
	"math/rand/v2"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"wpptrace/loader/cfg/absint"
	"wpptrace/loader/x86"
)

// stage is a program that stops where it has memory for instructions and for what they touch.
const stage = `
#include <sys/mman.h>
int main(void)
{
	mmap((void *)0x20000000, 16 << 20, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	asm volatile("int3");
}`

const stageText, stageData = 0x20000000, 0x20800000

// A processor runs single instructions, in a child of its own.
type processor struct {
	t       *testing.T
	program string
	pid     int
	begin   unix.PtraceRegs
}

func (p *processor) start() {
	cmd := exec.Command(p.program)
	cmd.SysProcAttr = &unix.SysProcAttr{Ptrace: true, Pdeathsig: unix.SIGKILL}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.pid = cmd.Process.Pid
	p.wait() // its exec
	unix.PtraceCont(p.pid, 0)
	if p.wait() != unix.SIGTRAP {
		p.t.Fatal("the program did not come to its trap")
	}
	if err := unix.PtraceGetRegs(p.pid, &p.begin); err != nil {
		p.t.Fatal(err)
	}
}

func (p *processor) kill() {
	unix.Kill(p.pid, unix.SIGKILL)
	p.wait()
}

// wait returns the signal that the child has stopped for; it has ended for -1.
func (p *processor) wait() unix.Signal {
	var status unix.WaitStatus
	for {
		if _, err := unix.Wait4(p.pid, &status, 0, nil); err != unix.EINTR {
			break
		}
	}
	if !status.Stopped() {
		return -1
	}
	return status.StopSignal()
}

// run runs an instruction. ok is false if it faults, or does not end: a virtual machine may lose a
// step, for which traps stand behind the instruction, and what an instruction waits for may never
// come.
func (p *processor) run(code []byte, general [16]uint64,
	flags uint64) (after unix.PtraceRegs, ok bool) {
	regs := p.begin
	for i, place := range places(&regs) {
		*place = general[i]
	}
	regs.Rip, regs.Eflags, regs.Orig_rax = stageText, flags, ^uint64(0)
	_, err := unix.PtracePokeData(p.pid, stageText,
		append(code[:len(code):len(code)], bytes.Repeat([]byte{0xcc}, 16)...))
	if err == nil {
		err = unix.PtraceSetRegs(p.pid, &regs)
	}
	if err == nil {
		err = unix.PtraceSingleStep(p.pid)
	}
	if err != nil {
		p.t.Fatalf("run % x: %v", code, err)
	}
	tooLong := time.AfterFunc(5*time.Second, func() { unix.Kill(p.pid, unix.SIGKILL) })
	stopped := p.wait()
	tooLong.Stop()
	switch stopped {
	case -1:
		p.start()
	case unix.SIGTRAP:
		ok = unix.PtraceGetRegs(p.pid, &after) == nil
	}
	return after, ok
}

// places are where registers are kept, by hardware number.
func places(r *unix.PtraceRegs) [16]*uint64 {
	return [16]*uint64{&r.Rax, &r.Rcx, &r.Rdx, &r.Rbx, &r.Rsp, &r.Rbp, &r.Rsi, &r.Rdi, &r.R8, &r.R9,
		&r.R10, &r.R11, &r.R12, &r.R13, &r.R14, &r.R15}
}

// drawCode draws bytes that begin like an instruction.
func drawCode(random *rand.Rand) (code []byte) {
	any := func() byte { return byte(random.Uint32()) }
	switch random.IntN(18) {
	case 0:
		code = append(code, 0xc5, any(), any())
	case 1:
		code = append(code, 0xc4, any()&0xe0|byte(1+random.IntN(3)), any()&^4,
			[]byte{any(), 0xe0 | any()}[random.IntN(2)])
	case 2:
		code = append(code, 0x62, any()&0xf0|byte(1+random.IntN(6)), any()|4, any()&0x7f|8, any())
	default:
		for random.IntN(5) == 0 {
			code = append(code, []byte{0x66, 0xf2, 0xf3, 0x67, 0x2e, 0xf0}[random.IntN(6)])
		}
		if random.IntN(2) == 0 {
			code = append(code, 0x40|any()&15)
		}
		code = append(code, [][]byte{nil, nil, nil, {0x0f}, {0x0f}, {0x0f, 0x38},
			{0x0f, 0x3a}}[random.IntN(7)]...)
		code = append(code, any())
	}
	modRM := any() | []byte{0, 0xc0}[random.IntN(2)]
	if modRM>>6 == 2 {
		modRM &= 0x7f // far from what registers point to
	}
	code = append(code, modRM)
	for range 10 {
		code = append(code, any())
	}
	return code
}

// runnable reports whether an instruction does nothing but to registers and memory: not so
// interrupts, system calls, and what loads segment registers or asks of the machine's tables, which
// a kernel may answer itself.
func runnable(in *x86.Inst) bool {
	switch {
	case in.Kind != x86.Other:
		return false
	case in.Map == 0:
		return in.Op != 0x8e && (in.Op < 0xcc || in.Op > 0xcf) && in.Op != 0xf1
	case in.Map == 1:
		return in.Op > 1 && in.Op != 0x05 && in.Op != 0x34 && in.Op != 0xa1 && in.Op != 0xa9 &&
			in.Op != 0xb2 && in.Op != 0xb4 && in.Op != 0xb5
	}
	return true
}

// drawRegisters draws what registers hold: small numbers, addresses, anything.
func drawRegisters(random *rand.Rand) (general [16]uint64) {
	wild := random.IntN(3) == 0
	for i := range general {
		general[i] = []uint64{random.Uint64N(64), random.Uint64N(4096),
			stageData + random.Uint64N(1<<16),
			stageData + random.Uint64N(1<<16)&^63}[random.IntN(4)]
		if wild {
			general[i] = random.Uint64()
		}
	}
	if random.IntN(2) == 0 {
		general[4] = stageData + 1<<20 + random.Uint64N(4096)&^15
	}
	return general
}

// TestEffectsAsTheProcessorHasThem: what registers are said to hold behind an instruction they do,
// flags that it is said to leave alone it leaves alone, and what it is said not to read is of no
// consequence.
func TestEffectsAsTheProcessorHasThem(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p := &processor{t: t, program: compile(t, stage, "-O1")}
	p.start()
	defer func() { p.kill() }()
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	const runs, status = 20_000, 0x8d5
	for n := 0; n < runs; {
		code := drawCode(random)
		in, ok := x86.Decode(code)
		if !ok || !runnable(&in) {
			continue
		}
		code = code[:in.Len]
		general, flags := drawRegisters(random), 0x202|random.Uint64()&status
		effects := in.Effects(code, 0)
		regs, keeps := absint.Unchanged(), in.KeepsFlags()
		regs.Apply([]absint.Effect{absint.EffectOf(effects)})
		after, ok := p.run(code, general, flags)
		if !ok {
			continue
		}
		n++
		for reg, place := range places(&after) {
			l := regs.At(int8(reg))
			if want, ok := valueOf(l, general); ok &&
				(want != *place && !l.Half || uint32(want) != uint32(*place)) {
				t.Fatalf("seed %d: % x leaves %x in register %d, %x by %+v; before %x", seed, code,
					*place, reg, want, l, general)
			}
		}
		if changed := flagsOf(after.Eflags ^ flags); keeps && changed&^x86.DF != 0 ||
			changed&^effects.FlagsWritten() != 0 {
			t.Fatalf("seed %d: % x changes the flags, from %x to %x", seed, code, flags,
				after.Eflags)
		}
		if effects.Complete() && len(effects.Accesses(nil)) == 0 {
			p.checkReads(&effects, code, general, flags, &after)
		}
	}
}

// flagsOf are the flags of a flags register.
func flagsOf(eflags uint64) (f x86.Flags) {
	for flag, bit := range map[x86.Flags]uint64{x86.CF: 0, x86.PF: 2, x86.AF: 4, x86.ZF: 6,
		x86.SF: 7, x86.DF: 10, x86.OF: 11} {
		if eflags>>bit&1 != 0 {
			f |= flag
		}
	}
	return f
}

// checkReads runs an instruction that takes no memory once more, with something else in a register
// that it is said not to read: all others are to hold the same again, and it as well, where it is
// surely written.
func (p *processor) checkReads(e *x86.Effects, code []byte, general [16]uint64, flags uint64,
	before *unix.PtraceRegs) {
	other := -1
	for reg := range int8(16) {
		if reg != x86.RSP && !e.Read().Has(reg) && (other < 0 || e.Written().Has(reg)) {
			other = int(reg)
		}
	}
	if other < 0 {
		return
	}
	general[other] ^= 0x5a5a5a5a_5a5a5a5a
	after, ok := p.run(code, general, flags)
	if !ok {
		p.t.Errorf("% x faults by what register %d holds, which it does not read", code, other)
		return
	}
	held := places(before)
	for reg, place := range places(&after) {
		if (reg != other || e.SurelyWritten().Has(int8(reg))) && *place != *held[reg] {
			p.t.Errorf("% x leaves %x and then %x in register %d, by what register %d held, "+
				"which it does not read", code, *held[reg], *place, reg, other)
		}
	}
}

// valueOf is what a function of registers is.
func valueOf(l absint.Linear, general [16]uint64) (v uint64, ok bool) {
	v = uint64(l.Add)
	for _, t := range l.Terms[:l.N] {
		reg, part, ok := t.Symbol.Register()
		if !ok {
			return 0, false
		}
		v += uint64(t.Times) * part.Of(general[reg])
	}
	return v, true
}
