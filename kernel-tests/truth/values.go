package truth

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

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
	// FlagsUsed are those of RFLAGS that decide what it does, and bit 1, which is always set; 0:
	// that was not recorded.
	FlagsUsed uint32
	// Vectors are what the vector registers hold behind it that it names.
	Vectors []VectorValue
	// Reads and Writes are its accesses, implicit ones (push, call, strings) included; the
	// iterations of a string instruction as one access where they touch. Those of instructions
	// that gather, and of the kernel, are missing.
	Reads, Writes []MemoryValue
	// Unlike has a bit for each general register that holds something else behind the same step of
	// another run, and UnlikeMemory says that of the accesses: see MarkUnlike.
	Unlike       uint16
	UnlikeMemory bool
	UnlikeFlags  uint32 // before it
	UnlikeVector bool   // one of Vectors
}

const alwaysSet = 2 // of RFLAGS

// A VectorValue is what the lower 16 bytes of a vector register hold.
type VectorValue struct {
	Register uint8
	Bytes    [16]byte
}

// MarkUnlike marks what another run of the same program has otherwise: the number of the process,
// the time, and what the stack protector has differ by their nature, and so does what is computed
// of them. It fails if the two have not executed the same.
func MarkUnlike(t, again *Trace) error {
	if !t.Equal(again) {
		return errors.New("two runs did not execute the same instructions")
	}
	for i, th := range t.Threads {
		other := again.Threads[i]
		if len(other.Values) != len(th.Values) {
			return fmt.Errorf("thread %d has values of %d steps, and of %d in another run", i,
				len(th.Values), len(other.Values))
		}
		var a, b Replay
		for k := range th.Values {
			s, o := &th.Values[k], &other.Values[k]
			a.Before(s)
			b.Before(o)
			s.UnlikeFlags = uint32(a.Registers[Flags] ^ b.Registers[Flags])
			s.UnlikeVector = !slices.Equal(s.Vectors, o.Vectors)
			a.After(s)
			b.After(o)
			for n := range FSBase {
				if a.Registers[n] != b.Registers[n] {
					s.Unlike |= 1 << n
				}
			}
			s.UnlikeMemory = !sameMemory(s.Reads, o.Reads) || !sameMemory(s.Writes, o.Writes)
		}
	}
	return nil
}

func sameMemory(a, b []MemoryValue) bool {
	return slices.EqualFunc(a, b, func(a, b MemoryValue) bool {
		return a.Addr == b.Addr && bytes.Equal(a.Bytes, b.Bytes)
	})
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
