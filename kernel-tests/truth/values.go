package truth

// Numbers of what is no general register, in RegisterValue.
const (
	FSBase = 16
	Flags  = 17 // RFLAGS
)

// A RegisterValue is what a register holds: a general one by its hardware number (0 rax, 4 rsp),
// FSBase, or Flags.
type RegisterValue struct {
	Register uint8
	Value    uint64
}

// A MemoryValue is what bytes of memory hold that an instruction reads or writes.
type MemoryValue struct {
	Addr  uint64 // of the process
	Bytes []byte
}

// A Step is what one instruction did. Addresses in registers and of memory are the process's.
type Step struct {
	Index int    // in Thread.Insns
	PC    uint64 // Thread.Insns[Index]
	// Before are the registers that other code has changed since the thread's last Step; all, of
	// its first.
	Before []RegisterValue
	// Written are the general registers whose values the instruction changed. One that it wrote
	// what was there is not among them.
	Written []RegisterValue
	Flags   uint32 // RFLAGS behind it
	// Reads and Writes are its accesses, implicit ones (push, call, strings) included; the
	// iterations of a string instruction as one access where they touch. Those of instructions
	// that gather, and of the kernel, are missing.
	Reads, Writes []MemoryValue
}

// A Replay goes along the steps of one thread and knows its registers.
type Replay struct {
	// Registers are the general ones by hardware number, FSBase and Flags.
	Registers [18]uint64
}

// Before has the registers as they are when the step begins.
func (r *Replay) Before(s *Step) {
	for _, v := range s.Before {
		r.Registers[v.Register] = v.Value
	}
}

// After has the registers as they are behind the step.
func (r *Replay) After(s *Step) {
	for _, v := range s.Written {
		r.Registers[v.Register] = v.Value
	}
	r.Registers[Flags] = uint64(s.Flags)
}
