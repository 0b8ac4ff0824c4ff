//go:build linux && cgo

package usermode

// #include "hit.h"
import "C"

import (
	"unsafe"

	"wpptrace/bpf/wire"
)

// A Field is a member of a structure of C as the compiler laid it out, in bytes. Name "" is the
// whole structure.
type Field struct {
	Struct, Name string
	Offset, Size uintptr
}

// Fields lists the members of the structures that C and Go share.
func Fields() []Field {
	var n C.size_t
	first := C.usermode_fields(&n)
	list := make([]Field, 0, n)
	for _, f := range unsafe.Slice(first, n) {
		list = append(list, Field{C.GoString(f.structure), C.GoString(f.name), uintptr(f.offset),
			uintptr(f.size)})
	}
	return list
}

// Numbers of C that Go code repeats.
const (
	MaxSites    = C.MAX_SITES
	BatchEvents = C.BATCH_EVENTS
	ChainMax    = C.CHAIN_MAX
	ResyncMax   = C.RESYNC_MAX
	CallProbes  = C.CALL_PROBES
	// Cookies of probes for values alone begin here.
	ExtraCookies = C.EXTRA_COOKIES
)

// Flags of a site, and its numbers for what it has not.
const (
	SiteFirst         = C.SITE_FIRST
	SiteCapture       = C.SITE_CAPTURE
	SiteCaptureTaken  = C.SITE_CAPTURE_TAKEN
	SiteCaptureMemory = C.SITE_CAPTURE_MEMORY
	SiteCaptureRIP    = C.SITE_CAPTURE_RIP
	SiteCaptureTarget = C.SITE_CAPTURE_TARGET
	SiteValue         = C.SITE_VALUE
	SiteSlot          = C.SITE_SLOT
	ConditionNone     = C.CONDITION_NONE
	NoReg             = C.NO_REG
)

// SetSignalFrame stores what a signal frame keeps of what a handler, which has this CFA,
// interrupted.
func (m Memory) SetSignalFrame(cfa, ip uint64, r *Registers) {
	at := func(i int) uint64 { return cfa + C.SIGNAL_FRAME_REGISTERS + 8*uint64(i) }
	for i, number := range wire.Registers {
		m.Set(at(i), r.General[number])
	}
	m.Set(at(C.FRAME_PC), ip)
}

// CallSlot is the first entry of the table of calls that a return address may be at.
func CallSlot(address uint64, shift uint32) uint32 {
	return uint32(C.usermode_call_slot(C.__u64(address), C.__u32(shift)))
}

// Condition is whether a conditional jump with this condition code is taken (1) under these flags
// (0: it is not).
func Condition(code uint8, flags uint64) uint64 {
	return uint64(C.usermode_condition(C.__u8(code), C.__u64(flags)))
}

// Hit is the event that C makes of a hit.
func Hit(site, outcome int, cfa uint64) wire.Event {
	return wire.Event(C.usermode_hit_event(C.__u64(site), C.__u64(outcome), C.__u64(cfa)))
}

// Caller is the event that C makes of a return address. Resync events have bit 3 of the origin set.
func Caller(origin wire.Origin, address uint64) wire.Event {
	return wire.Event(C.usermode_caller(C.__u64(origin), C.__u64(address)))
}

// Captured is the event that C makes of a captured value.
func Captured(value uint64) wire.Event { return wire.Event(C.usermode_captured(C.__u64(value))) }

// Repeat is the event that C makes of repetitions.
func Repeat(n uint64) wire.Event { return wire.Event(C.usermode_repeat(C.__u64(n))) }

// End is the event that C makes of a thread's end.
func End(origin wire.Origin, address uint64) wire.Event {
	return wire.Event(C.usermode_end(C.__u64(origin), C.__u64(address)))
}
