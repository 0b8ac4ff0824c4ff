package machine

// Knowledge says how sure a value is: that of a result is the least of what it depends on.
type Knowledge uint8

// The degrees of knowledge.
const (
	Unknown Knowledge = iota
	Unconfirmed
	Confirmed
)

// Memory is what instructions load from and store to. Both are of 1 to 64 bytes.
type Memory interface {
	// Load fills to as far as anything is known of it.
	Load(addr uint64, to []byte) Knowledge
	Store(addr uint64, from []byte, k Knowledge)
}

// An Access is one that an instruction has made.
type Access struct {
	Addr  uint64
	Size  int
	Write bool
	Known Knowledge // of what was read or written; Unknown, too, if the address is not known
	Bytes [64]byte
}

// A Machine is the registers of a thread.
type Machine struct{}
