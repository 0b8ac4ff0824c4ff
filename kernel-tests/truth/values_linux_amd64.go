package truth

import (
	"bytes"
	"fmt"
	"os/exec"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A valuer has registers and memory operands recorded at each step. A nil one does nothing.
type valuer struct {
	within Routines
	pid    int
	atlas  *atlas
	code   map[uint64]disassembled // by address, as Placed makes them of libraries
	known  map[*image]bool         // those in code
}

// values are what is known of a thread's registers and of the instruction that it runs next.
type values struct {
	now     unix.PtraceRegs // as the thread has stopped last
	last    [18]uint64      // behind its last Step
	found   [18]uint64      // as pending found them
	pending *Step           // the instruction that runs next, if it is to be recorded
	repeats bool            // iterations of pending have run
	places  []accessed      // of pending: of each operand
	count   uint64          // rcx before it, or before this iteration of it
}

// An accessed operand is where it lies, and where its accesses are.
type accessed struct {
	addr        uint64
	read, write int // in Step.Reads and Step.Writes, or none
}

func (v *values) look(tid int) (pc uint64, err error) {
	if err := unix.PtraceGetRegs(tid, &v.now); err != nil {
		return 0, fmt.Errorf("read registers: %w", err)
	}
	return v.now.Rip, nil
}

// open disassembles the image of a process, and is to do so with its libraries.
func (v *valuer) open(pid int, a *atlas) error {
	v.pid, v.atlas = pid, a
	v.code, v.known = map[uint64]disassembled{}, map[*image]bool{}
	return v.disassemble(a.exe, fmt.Sprintf("/proc/%d/exe", pid))
}

func (v *valuer) disassemble(img *image, path string) error {
	args := []string{"-d", "-w", "-M", "intel", "--no-show-raw-insn", path}
	out, err := exec.Command("objdump", args...).Output()
	if err != nil {
		return fmt.Errorf("disassemble %s: %w", path, err)
	}
	code, err := disassemble(bytes.NewReader(out))
	for pc, insn := range code {
		v.code[pc+img.space] = insn
	}
	v.known[img] = true
	return err
}

// at is the image that an address is in, disassembled; nil: none that is wanted.
func (v *valuer) at(pc uint64) (*image, error) {
	img, err := v.atlas.at(pc)
	if img == nil || err != nil || v.known[img] {
		return img, err
	}
	for path, is := range v.atlas.images {
		if is == img {
			return img, v.disassemble(img, path)
		}
	}
	return img, nil
}

// before notes what the instruction that runs next finds.
func (v *valuer) before(t *tracee) error {
	if v == nil {
		return nil
	}
	w := &t.values
	img, err := v.at(t.pc)
	if img == nil || err != nil {
		w.pending, w.repeats = nil, false
		return err
	}
	place := img.place(t.pc)
	if !w.repeats || w.pending == nil || w.pending.PC != place {
		w.pending, w.repeats = nil, false
		w.pending, w.found = &Step{PC: place}, generals(&w.now)
		for i, value := range w.found {
			if value != w.last[i] || len(t.Values) == 0 {
				w.pending.Before = append(w.pending.Before, RegisterValue{uint8(i), value})
			}
		}
		w.places = w.places[:0]
		for range v.code[place].operands {
			w.places = append(w.places, accessed{read: none, write: none})
		}
	}
	now := generals(&w.now)
	w.count = w.now.Rcx
	for i, o := range v.code[place].operands {
		at := &w.places[i]
		at.addr = o.address(&now, w.now.Gs_base, img.bias)
		if o.read && !(o.repeats && w.count == 0) {
			v.access(&w.pending.Reads, &at.read, at.addr, o.size)
		}
	}
	return nil
}

// access reads what an operand holds, and puts it to the accesses of the instruction.
func (v *valuer) access(list *[]MemoryValue, index *int, addr uint64, size int) {
	b := make([]byte, size)
	n, err := unix.ProcessVMReadv(v.pid, []unix.Iovec{{Base: &b[0], Len: uint64(size)}},
		[]unix.RemoteIovec{{Base: uintptr(addr), Len: size}}, 0)
	if err != nil || n < size {
		b = nil // the instruction is going to fault
	}
	if *index != none && b != nil {
		switch m := &(*list)[*index]; addr {
		case m.Addr + uint64(len(m.Bytes)):
			m.Bytes = append(m.Bytes, b...)
			return
		case m.Addr - uint64(size):
			m.Addr, m.Bytes = addr, append(b, m.Bytes...)
			return
		}
	}
	*index = len(*list)
	*list = append(*list, MemoryValue{addr, b})
}

// iterated is the end of an iteration of a string instruction that goes on.
func (v *valuer) iterated(t *tracee) {
	if v != nil && t.values.pending != nil {
		v.writes(t)
		t.values.repeats = true
	}
}

// writes reads what the instruction, or this iteration of it, has written.
func (v *valuer) writes(t *tracee) {
	w := &t.values
	for i, o := range v.code[w.pending.PC].operands {
		if at := &w.places[i]; o.write && !(o.repeats && w.count == 0) {
			v.access(&w.pending.Writes, &at.write, at.addr, o.size)
		}
	}
}

// executed is the end of an instruction, which Insns has not got yet.
func (v *valuer) executed(t *tracee) {
	if v == nil || t.values.pending == nil {
		return
	}
	v.writes(t)
	w := &t.values
	s, code := w.pending, v.code[w.pending.PC]
	for _, o := range code.operands {
		if o.repeats && !w.repeats && w.count == 0 {
			code.flags = 0 // it does nothing
		}
	}
	w.pending, w.repeats = nil, false
	w.last = generals(&w.now)
	for i := range FSBase {
		if w.last[i] != w.found[i] {
			s.Written = append(s.Written, RegisterValue{uint8(i), w.last[i]})
		}
	}
	s.Index, s.Flags = len(t.Insns), uint32(w.last[Flags])
	s.FlagsUsed = code.flags | alwaysSet
	if len(code.vectors) > 0 {
		s.Vectors = vectors(t.TID, code.vectors)
	}
	t.Values = append(t.Values, *s)
}

func generals(r *unix.PtraceRegs) [18]uint64 {
	return [18]uint64{r.Rax, r.Rcx, r.Rdx, r.Rbx, r.Rsp, r.Rbp, r.Rsi, r.Rdi, r.R8, r.R9, r.R10,
		r.R11, r.R12, r.R13, r.R14, r.R15, r.Fs_base, r.Eflags}
}

// vectors reads some vector registers of a thread that has stopped; nil: it has gone.
func vectors(tid int, numbers []uint8) (list []VectorValue) {
	const getFPRegs, size, first = 14, 512, 160 // of the area that FXSAVE writes
	var area [size]byte
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, getFPRegs, uintptr(tid), 0,
		uintptr(unsafe.Pointer(&area[0])), 0, 0)
	if errno != 0 {
		return nil
	}
	for _, n := range numbers {
		list = append(list, VectorValue{n, [16]byte(area[first+16*int(n):])})
	}
	return list
}
