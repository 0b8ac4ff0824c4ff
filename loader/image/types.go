package image

// A CFA is a rule for the canonical frame address: a register plus an offset, or what lies in the
// frame at one.
type CFA struct {
	// DWARF number: 7 rsp, 6 rbp; Slot, Expression or Undefined when it is not register + offset
	Reg int8
	Off int32
}

// Special values of CFA.Reg.
const (
	Expression int8 = -1
	Undefined  int8 = -2
	// the 8 bytes at rbp + Off: compilers write so for routines that align their stack
	Slot int8 = -3
)

// A Row is the unwind state from PC to the next row's PC.
type Row struct {
	PC  uint64
	CFA CFA
	RA  RARule
}

// An RARule says where the return address is.
type RARule uint8

// The rules for the return address.
const (
	RAAtCFA     RARule = iota // at CFA - 8, as the call left it
	RAUndefined               // the outermost frame
	RAOther                   // anything else
)

// A CallSite is an entry of a language-specific data area: an exception thrown in [Lo, Hi) lands at
// Pad (0: nowhere).
type CallSite struct {
	Lo, Hi, Pad uint64
	Action      uint64
}

// A Range is a frame description entry: one contiguous piece of code with its unwind rows.
type Range struct {
	Lo, Hi uint64 // link-time addresses, Hi exclusive
	first  CFA
	frames *frames
	more   *details // nil: there is no call site and no fault
	at     uint32   // offset of its entry
	Signal bool     // a signal trampoline
}

// details are what few ranges have.
type details struct {
	calls []CallSite
	fault string
}

// Calls are the range's call sites, in the order of the file; shared.
func (r *Range) Calls() []CallSite {
	if r.more == nil {
		return nil
	}
	return r.more.calls
}

// Fault is why the unwind information could not be understood: there are no rows, and no Calls
// then. "": it was.
func (r *Range) Fault() string {
	if r.more == nil {
		return ""
	}
	return r.more.fault
}

// A Symbol is a function symbol that the file defines.
type Symbol struct {
	Name    string // mangled
	Addr    uint64
	Size    uint64
	Dynamic bool // from .dynsym
	Local   bool // other files that are linked cannot name it
}

// A Section is a part of the file that is mapped at run time and has bytes in the file.
type Section struct {
	Name     string
	Addr     uint64 // link-time
	Data     []byte // shared, not to be written
	Exec     bool
	Writable bool
}

// A Segment is an executable PT_LOAD: what the kernel maps, page by page, of the file.
type Segment struct {
	Addr    uint64 // link-time
	Offset  uint64 // in the file
	FileLen uint64 // bytes of it in the file
	MemLen  uint64 // bytes of it in memory
}

// RowAt returns the row of a range's that holds before the instruction at pc; one whose CFA is
// Undefined, if none does.
func RowAt(rows []Row, pc uint64) Row {
	i, j := 0, len(rows)
	for i < j {
		if half := (i + j) / 2; rows[half].PC <= pc {
			i = half + 1
		} else {
			j = half
		}
	}
	if i == 0 {
		return Row{CFA: CFA{Reg: Undefined}}
	}
	return rows[i-1]
}
