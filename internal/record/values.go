package record

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"

	"wpptrace/compress/ops"
	"wpptrace/compress/wet"
	"wpptrace/compress/wpp"
	"wpptrace/decoder"
	"wpptrace/decoder/code"
	"wpptrace/decoder/values"
	"wpptrace/internal/traced"
	"wpptrace/loader/attach"
	"wpptrace/loader/image"
	"wpptrace/loader/plan"
	"wpptrace/loader/sharing"
	"wpptrace/loader/target"
)

// ValuesRing is the usual size in bytes of the buffer between the kernel and a recording of values:
// a hit takes some 40 bytes of it, not 8.
const ValuesRing = 128 << 20

// valuedSymbols is how many symbols a segment of paths has whose values are recorded, so that one
// value is found without reading all of the paths: some 10 ms.
const valuedSymbols = 1 << 18

// A valued is what a recording of values has besides that of paths. Its methods do nothing where
// there is none.
type valued struct {
	*values.Recorder
	code    *wet.Code
	process *target.Process
	sharing *sharing.Memory
	plan    *plan.Plan
	imports []map[uint64]string // of each image that is placed
}

// newValued begins to record the values of a program, whose file is open, in a process that a
// session is for.
func newValued(p *target.Process, s *attach.Session, program *traced.Program, d *decoder.Decoder,
	symbols *ops.Symbols, exe *os.File) (v *valued, err error) {
	if program.Loads == nil {
		return nil, nil
	}
	v = &valued{process: p, plan: program.Plan}
	v.code = code.Of(program.Plan, v.bound)
	if v.sharing, err = sharing.Follow(p, s.Sequences); err != nil {
		return nil, err
	}
	v.Recorder = values.New(program.Loads, v.code, d, symbols, v.sharing)
	return v, v.place(exe, program.Image)
}

func (v *valued) close() {
	if v != nil {
		v.sharing.Close()
	}
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
				v.code.Place(len(v.imports), m.Lo+before-s.Addr) // a mapping begins with a page
				v.imports = append(v.imports, im.Imports())
				return nil
			}
		}
	}
	return fmt.Errorf("record values of %s in process %d (%s): it is not mapped there", im.Name,
		v.process.PID, v.process.Name)
}

// bound is where a slot of an image leads: see code.Bound. What the loader has yet to write leads
// nowhere.
func (v *valued) bound(image int, slot uint64) (to uint64, ok bool) {
	var word [8]byte
	bias := v.code.Bias(image)
	if err := v.process.ReadMemory(word[:], bias+slot); err != nil { // the process has ended
		return 0, false
	}
	at := binary.LittleEndian.Uint64(word[:])
	for i := range v.imports {
		part := &v.plan.Parts[i]
		r := part.Program.Containing(at - v.code.Bias(i))
		if r != nil && r.Addr == at-v.code.Bias(i) && part.Routines[r.ID].Traced() {
			return at - bias, true
		}
	}
	return 0, false
}

// sections copies what those of a snapshot have that has these threads, and leaves it to complete
// to encode them.
func (v *valued) sections(all []*thread) (complete func() []*wpp.Section) {
	if v == nil {
		return func() []*wpp.Section { return nil }
	}
	of := make([]*values.Thread, len(all))
	for i, t := range all {
		of[i] = t.values
	}
	v.code.SetChanged(v.changed())
	ofAll := v.Sections(of)
	ran, routines, imports := v.code.Copy(), len(v.plan.Routines), slices.Clip(v.imports)
	return func() []*wpp.Section {
		return append(ofAll(), code.Callees(ran, routines, imports).Section())
	}
}

// spill returns the sections that need not stay in memory once they are written.
func (v *valued) spill() []*wpp.Section {
	if v == nil {
		return nil
	}
	return v.Spill()
}

// changed lists the routines that ran whose code in the process may have been other than the file's
// since the recording began.
func (v *valued) changed() (list []int) {
	v.sharing.Update()
	text, ran := v.sharing.Text(), v.code.Copy()
	for number := range v.plan.Routines {
		if r := ran.Routine(number); r != nil &&
			(slices.Contains(ran.Changed(), number) || v.isChanged(text, r)) {
			list = append(list, number)
		}
	}
	return list
}

func (v *valued) isChanged(text *sharing.Text, r *wet.Routine) bool {
	return slices.ContainsFunc(r.Blocks, func(b wet.Block) bool {
		n, probed := 0, map[int]bool{}
		for i := range b.Insns {
			probed[n] = slices.ContainsFunc(b.Sites, func(s wet.Site) bool { return s.Insn == i })
			n += int(b.Insns[i].Len)
		}
		file := v.plan.Parts[r.Image].Program.Image.Bytes(b.Addr, b.Addr+uint64(n))
		return text.IsRewritten(b.Addr+v.code.Bias(r.Image), file,
			func(at int) bool { return probed[at] })
	})
}
