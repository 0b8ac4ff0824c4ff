package traced

import (
	"math"
	"os"

	"wpptrace/internal/memory"
	"wpptrace/internal/remedy"
	"wpptrace/loader/image"
	"wpptrace/loader/target"
)

// What recovering and planning takes in memory, by measurements of a dozen programs from 1 to 230
// MB. Of a large program, of which a part is recovered, the file is held, and some tables.
const (
	perFrame   = 228      // bytes, for each frame description entry
	partOfCode = 3        // a byte for so many bytes of code
	selected   = 30 << 20 // bytes, for what is selected, and what it depends on
	ownMemory  = 32 << 20 // bytes, for what is not on the collector's heap

	// what the heap is kept to where that can be, so that the process stays below 500 MB; and what
	// of it may be garbage, so that the collector takes little time
	aimed, aimedGarbage = 384 << 20, 96 << 20
	// What the collector keeps to has a share that is not on the heap, of what the heap has: where
	// more than the rest is alive, it collects without a pause.
	besides = 14

	// Of all of a program's code, bytes for each byte: the least with which it can be done.
	perByte    = 40
	leastOfAny = 8 << 20 // bytes
)

// partNeeds is what the heap has at most when a part of a program is recovered.
func partNeeds(s image.Sizes) uint64 {
	return s.Mapped + s.Frames*perFrame + s.Code/partOfCode + selected
}

// allNeeds is the memory without which all of a program cannot be recovered.
func allNeeds(code uint64) uint64 { return leastOfAny + code*perByte }

// A room is how much memory the control groups of this process leave it: it ends without a word
// where it takes more.
type room struct {
	left uint64
	name string // of what is planned
}

func newRoom(name string) room { return room{target.MemoryLeft(os.Getpid()), name} }

// check fails where something takes more than is left.
func (r room) check(kind remedy.Kind, needs uint64) error {
	if needs <= r.left {
		return nil
	}
	return remedy.Errorf(kind, "plan probes of %s: that takes about %d MB of memory, and the "+
		"control groups of wpptrace leave it %d MB", r.name, needs>>20, r.left>>20)
}

// begin has the collector keep to what a file takes, and fails where there is no room for that.
// end is called when the program is planned.
func (r room) begin(f *os.File) (end func(), err error) {
	st, err := f.Stat()
	if err != nil {
		return func() {}, nil // who reads it fails for that
	}
	sizes, err := image.ReadSizes(f, st.Size(), r.name)
	if err != nil {
		return func() {}, nil
	}
	most := uint64(math.MaxInt64)
	if sizes.Code >= uint64(large) {
		heap := partNeeds(sizes)
		most = max(heap+heap/besides, min(heap+aimedGarbage, aimed)) + memory.Alive()
		err = r.check(remedy.MoreMemory, heap+heap/8+ownMemory) // with that of a recording
	} else {
		err = r.check(remedy.MoreMemory, allNeeds(sizes.Code))
	}
	if r.left < math.MaxInt64 {
		most = min(most, r.left-r.left/8)
	}
	if err != nil || most == math.MaxInt64 {
		return func() {}, err
	}
	return memory.During(int64(most)), nil
}
