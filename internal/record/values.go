package record

import (
	"fmt"
	"os"
	"time"

	"wpptrace/compress/wet"
	"wpptrace/compress/wpp"
	"wpptrace/decoder"
	"wpptrace/decoder/code"
	"wpptrace/decoder/values"
	"wpptrace/internal/traced"
	"wpptrace/loader/attach"
	"wpptrace/loader/image"
	"wpptrace/loader/target"
)

// ValuesRing is the usual size in bytes of the buffer between the kernel and a recording of values:
// a hit takes some 40 bytes of it, not 8.
const ValuesRing = 128 << 20

// A valued is what a recording of values has besides that of paths. Its methods do nothing where
// there is none.
type valued struct {
	*values.Recorder
	code    *wet.Code
	process *target.Process
	images  int // that are placed
}

// newValued begins to record the values of a program, whose file is open, in a process.
func newValued(p *target.Process, program *traced.Program, d *decoder.Decoder, exe *os.File,
	s *attach.Session) (*valued, error) {
	if program.Loads == nil {
		return nil, nil
	}
	v := &valued{code: code.Of(program.Plan), process: p}
	v.Recorder = values.New(program.Loads, v.code, d, racing(p, program.Image, s.Counters()))
	return v, v.place(exe, program.Image)
}

// place notes where the plan's next image lies.
func (v *valued) place(f *os.File, im *image.Image) error {
	if v == nil {
		return nil
	}
	mappings, err := v.process.Mappings(f)
	if err != nil {
		return err
	}
	for _, m := range mappings {
		for _, s := range im.Segments {
			if before := s.Offset - m.Offset; m.Exec && before < uint64(os.Getpagesize()) {
				v.code.Place(v.images, m.Lo+before-s.Addr) // a mapping begins with a page
				v.images++
				return nil
			}
		}
	}
	return fmt.Errorf("record values of %s in process %d (%s): it is not mapped there", im.Name,
		v.process.PID, v.process.Name)
}

// sections copies what those of a snapshot have that has these threads, and leaves it to complete
// to encode them.
func (v *valued) sections(all []*thread) (complete func() []*wpp.Section) {
	if v == nil {
		return func() []*wpp.Section { return nil }
	}
	var parts []func() []*wpp.Section
	for i, t := range all {
		if t.values != nil {
			parts = append(parts, t.values.Sections(i))
		}
	}
	parts = append(parts, v.Sections())
	return func() (list []*wpp.Section) {
		for _, part := range parts {
			list = append(list, part()...)
		}
		return list
	}
}

// betweenThreads is how long a process is taken for one without threads until it is looked at
// again: where its executable starts threads, these are looked for each time.
const betweenThreads = 5 * time.Millisecond

// racing returns what reports whether others than the thread that runs may write to the memory of a
// process.
func racing(p *target.Process, im *image.Image, c *attach.Counters) func() bool {
	starts := false
	for _, name := range im.Imports() {
		starts = starts || name == "pthread_create" || name == "thrd_create" || name == "clone"
	}
	shares, _ := p.SharesMemory() // what it maps from now on is counted, or there at the next look
	var threads time.Time
	looked := false
	return func() bool {
		if !looked {
			looked = true
			now, _ := p.SharesMemory()
			shares = shares || now
		}
		if shares || c.SharesMemory() {
			return true
		}
		now := time.Now()
		if starts || now.Sub(threads) > betweenThreads {
			threads = now
			if list, _ := p.Threads(); len(list) > 1 { // none, if it has ended
				return true
			}
		}
		return false
	}
}
