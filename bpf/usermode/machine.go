//go:build linux && cgo

package usermode

// #include <stdlib.h>
// #include "hit.h"
import "C"

import (
	"runtime/cgo"
	"unsafe"

	"wpptrace/bpf"
)

// A Memory is the memory of a simulated process: the 8-byte words that can be read, by address.
// Addresses are multiples of 8.
type Memory map[uint64]uint64

// Set stores a word at any address; the bytes around it that nobody has stored read as 0.
func (m Memory) Set(address, word uint64) {
	low, shift := address&^7, address&7*8
	m[low] = m[low]&^(^uint64(0)<<shift) | word<<shift
	if shift != 0 {
		m[low+8] = m[low+8]&^(^uint64(0)>>(64-shift)) | word>>(64-shift)
	}
}

// Read returns 1 to 8 bytes at any address; ok is false if one of them cannot be read.
func (m Memory) Read(address, size uint64) (value uint64, ok bool) {
	low, shift := address&^7, address&7*8
	value, ok = m[low]
	value >>= shift
	if ok && shift/8+size > 8 {
		var high uint64
		high, ok = m[low+8]
		value |= high << (64 - shift)
	}
	return value & (^uint64(0) >> (64 - 8*size)), ok
}

// Registers are those of a thread at a hit.
type Registers struct {
	General [16]uint64 // by hardware number: 4 rsp, 5 rbp
	Flags   uint64
}

// A Machine is a simulated process with a plan's tables. It is used by one goroutine at a time.
type Machine struct {
	Memory Memory
	// Peek reads 1 to 8 bytes of the process instead of Memory; nil: it is Memory's Read.
	Peek func(address, size uint64) (value uint64, ok bool)
	// Output takes a record as the ring buffer would, and keeps it: true; false: there is no room.
	// By default there always is.
	Output func(record []byte) bool
	// Keep takes a record that is left of a thread where Output has no room, or while Keeping. By
	// default it has none.
	Keep func(record []byte) bool
	// a record that Keep took has not been read, or Output's room is for others
	Keeping bool
	Records [][]byte                        // what Output and Keep took
	Losses  map[uint32]bpf.TracerLoss       // by thread
	Metrics [bpf.TracerMetricMETRICS]uint64 // by kind of failure

	// Looks, by cookies as of sites and behind them of probes for values alone, has hits take
	// states; nil: they do not. The next three are of its load programs; After is by link-time
	// return addresses.
	Looks  []bpf.TracerLook
	Steps  []bpf.TracerLoadStep
	Cases  []uint32
	After  map[uint64]uint32
	FSBase uint64

	sites      []bpf.TracerSite
	calls      map[uint64]bpf.TracerCall
	base, size uint64
}

// New returns a machine whose image of size bytes is loaded at base above its link-time addresses.
// The attach cookie is the index in sites; calls are by link-time return address.
func New(sites []bpf.TracerSite, calls map[uint64]bpf.TracerCall, base, size uint64) *Machine {
	return &Machine{
		Memory: Memory{}, Losses: map[uint32]bpf.TracerLoss{}, sites: sites, calls: calls,
		base: base, size: size,
		Output: func([]byte) bool { return true }, Keep: func([]byte) bool { return false },
	}
}

// A Thread is what the program remembers of a thread.
type Thread struct{ c *C.struct_thread }

// NewThread returns a thread that began at started (ns); midRun: it ran before the tracer was
// attached. The caller frees it.
func NewThread(tid uint32, started uint64, midRun bool) *Thread {
	resync := C.int(0)
	if midRun {
		resync = 1
	}
	return &Thread{C.usermode_thread(C.__u32(tid), C.__u64(started), resync)}
}

// Free frees the thread.
func (t *Thread) Free() {
	C.free(unsafe.Pointer(t.c))
	t.c = nil
}

// Hit runs the program for a hit of the site with the cookie, or of a probe for values alone.
func (m *Machine) Hit(t *Thread, cookie uint32, r *Registers) {
	if m.Looks != nil {
		index, extra := uint64(cookie), C.int(0)
		if cookie >= C.EXTRA_COOKIES {
			index, extra = index-C.EXTRA_COOKIES+uint64(len(m.sites)), 1
		}
		if index < uint64(len(m.Looks)) {
			regs, l := r.inC(), (*C.struct_look)(unsafe.Pointer(&m.Looks[index]))
			m.run(func(c C.struct_machine) {
				C.usermode_look(c, t.c, &regs, l, C.__u32(cookie), extra)
			})
		}
		if extra != 0 {
			m.Metrics[bpf.TracerMetricMETRIC_VALUE_HITS]++
			return
		}
	}
	if uint64(cookie) >= uint64(len(m.sites)) {
		m.Metrics[bpf.TracerMetricMETRIC_NO_SITE]++
		return
	}
	regs := r.inC()
	site := (*C.struct_site)(unsafe.Pointer(&m.sites[cookie]))
	m.run(func(c C.struct_machine) { C.usermode_hit(c, t.c, &regs, site, C.__u32(cookie)) })
}

func (r *Registers) inC() C.struct_registers {
	g := &r.General
	return C.struct_registers{
		rax: C.__u64(g[0]), rcx: C.__u64(g[1]), rdx: C.__u64(g[2]), rbx: C.__u64(g[3]),
		rsp: C.__u64(g[4]), rbp: C.__u64(g[5]), rsi: C.__u64(g[6]), rdi: C.__u64(g[7]),
		r8: C.__u64(g[8]), r9: C.__u64(g[9]), r10: C.__u64(g[10]), r11: C.__u64(g[11]),
		r12: C.__u64(g[12]), r13: C.__u64(g[13]), r14: C.__u64(g[14]), r15: C.__u64(g[15]),
		flags: C.__u64(r.Flags),
	}
}

// Drain has the thread hand over what it has not sent, as at a detach.
func (m *Machine) Drain(t *Thread) {
	m.run(func(c C.struct_machine) { C.usermode_drain(c, t.c) })
}

// Signal has a handler of a signal come at a user instruction pointer, where registers hold this
// and signals are blocked, signal 1 by the lowest bit.
func (m *Machine) Signal(t *Thread, ip uint64, r *Registers, signal int, blocked uint64) {
	regs := r.inC()
	regs.rip = C.__u64(ip)
	m.run(func(c C.struct_machine) {
		C.usermode_signal(c, t.c, &regs, C.__u32(signal), C.__u64(blocked))
	})
}

// Faulted has the instruction of the image at a user instruction pointer fault, where registers
// hold this: its handler comes and, behind that, the same again without one.
func (m *Machine) Faulted(t *Thread, ip uint64, r *Registers) {
	regs := r.inC()
	regs.rip = C.__u64(ip)
	m.run(func(c C.struct_machine) { C.usermode_faulted(c, t.c, &regs) })
}

// Fault has an instruction of other code fault, with this stack pointer.
func (m *Machine) Fault(t *Thread, sp uint64) {
	m.run(func(c C.struct_machine) { C.usermode_fault(c, t.c, C.__u64(sp)) })
}

// Exit ends the thread at a user instruction pointer, where registers hold this and signals are
// blocked, signal 1 by the lowest bit.
func (m *Machine) Exit(t *Thread, ip uint64, r *Registers, blocked uint64) {
	regs := r.inC()
	regs.rip = C.__u64(ip)
	m.run(func(c C.struct_machine) { C.usermode_exit(c, t.c, &regs, C.__u64(blocked)) })
}

func (m *Machine) run(call func(C.struct_machine)) {
	h := cgo.NewHandle(m)
	defer h.Delete()
	call(C.struct_machine{handle: C.uintptr_t(h), base: C.__u64(m.base), size: C.__u64(m.size)})
}

func machineOf(h C.uintptr_t) *Machine { return cgo.Handle(h).Value().(*Machine) }

//export readMemory
func readMemory(h C.uintptr_t, address C.__u64, size C.__u32, to *C.__u64) C.int {
	m := machineOf(h)
	read := m.Memory.Read
	if m.Peek != nil {
		read = m.Peek
	}
	word, ok := read(uint64(address), uint64(size))
	if !ok {
		return -1
	}
	*to = C.__u64(word)
	return 0
}

//export findCall
func findCall(h C.uintptr_t, address C.__u64, to *C.struct_call) C.int {
	c, ok := machineOf(h).calls[uint64(address)]
	if !ok {
		return 0
	}
	to.info, to.caller = C.__u32(c.Info), C.__s32(c.Caller)
	return 1
}

//export sendRecord
func sendRecord(h C.uintptr_t, record unsafe.Pointer, size C.size_t) C.long {
	m := machineOf(h)
	return m.take(m.Output, C.GoBytes(record, C.int(size)))
}

//export keepsRests
func keepsRests(h C.uintptr_t) C.int {
	if machineOf(h).Keeping {
		return 1
	}
	return 0
}

//export keepRecord
func keepRecord(h C.uintptr_t, record unsafe.Pointer, size C.size_t) C.long {
	m := machineOf(h)
	return m.take(m.Keep, C.GoBytes(record, C.int(size)))
}

//export takesValues
func takesValues(h C.uintptr_t) C.int {
	if machineOf(h).Looks == nil {
		return 0
	}
	return 1
}

//export fsBase
func fsBase(h C.uintptr_t) C.__u64 { return C.__u64(machineOf(h).FSBase) }

//export loadStep
func loadStep(h C.uintptr_t, index C.__u32, to *C.struct_load_step) C.int {
	steps := machineOf(h).Steps
	if uint64(index) >= uint64(len(steps)) {
		return 0
	}
	*to = *(*C.struct_load_step)(unsafe.Pointer(&steps[index]))
	return 1
}

//export loadCase
func loadCase(h C.uintptr_t, index C.__u32) C.__u32 {
	cases := machineOf(h).Cases
	if uint64(index) >= uint64(len(cases)) {
		return 0
	}
	return C.__u32(cases[index])
}

//export continuationOf
func continuationOf(h C.uintptr_t, place C.__u64) C.__u32 {
	return C.__u32(machineOf(h).After[uint64(place)])
}

func (m *Machine) take(into func([]byte) bool, record []byte) C.long {
	if !into(record) {
		return -1
	}
	m.Records = append(m.Records, record)
	return 0
}

//export loseHits
func loseHits(h C.uintptr_t, tid C.__u32, hits, lost, batch C.__u64) {
	m := machineOf(h)
	m.Metrics[bpf.TracerMetricMETRIC_LOST_BATCHES]++
	m.Metrics[bpf.TracerMetricMETRIC_LOST_HITS] += uint64(batch)
	m.Losses[uint32(tid)] = bpf.TracerLoss{Hits: uint64(hits), Lost: uint64(lost)}
}

//export countMetric
func countMetric(h C.uintptr_t, metric C.uint, n C.__u64) {
	machineOf(h).Metrics[metric] += uint64(n)
}
