package values

import (
	"encoding/binary"

	"wpptrace/loader/plan"
)

// Read gives what the hit has read: see loads.Process.
func (r *replay) Read(_ uint64, to []byte) bool {
	failed, words := r.failed>>r.n&1 != 0, (len(to)+7)/8
	r.n++
	if len(r.words) < words {
		return false
	}
	read := r.words[:words] // zeroes of one that failed
	r.words = r.words[words:]
	if failed {
		return false
	}
	for _, v := range read {
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], v)
		to = to[copy(to, word[:]):]
	}
	return true
}

// Continuation: see loads.Process.
func (r *replay) Continuation(returnAddress uint64) (step uint32, ok bool) {
	rec := r.recorder
	for i := range rec.plan.Base.Parts {
		part := &rec.plan.Base.Parts[i]
		step, ok = rec.plan.After[returnAddress-rec.code.Bias(i)+part.Offset]
		if ok {
			return step, ok
		}
	}
	return 0, false
}

// Bias: see loads.Process.
func (r *replay) Bias(look int) uint64 {
	p := r.recorder.plan
	routine := 0
	if n := len(p.Base.Sites); look < n {
		routine = p.Base.Sites[look].Routine
	} else {
		routine = p.Extra[look-n].Routine
	}
	if code := r.recorder.code.Routine(routine); code != nil {
		return r.recorder.code.Bias(code.Image)
	}
	return 0
}

// A readOnly is the data of images that nobody writes.
type readOnly struct {
	ranges []fixed
	sealed []sealed
	images int // of the plan that are in ranges
	// what sealed words hold that the loader has found elsewhere, by their addresses, once seen
	seen map[uint64]uint64
	// functions of other images whose addresses these are, by that
	names map[uint64]string
}

// A sealed is data that nobody writes once the loader has, by link-time addresses.
type sealed struct {
	image  int
	lo, hi uint64
}

// A fixed is some of it, by link-time addresses.
type fixed struct {
	image int
	lo    uint64
	data  []byte
}

// grow takes in the images that have been added to the plan.
func (f *readOnly) grow(parts []plan.Part) {
	for ; f.images < len(parts); f.images++ {
		im := parts[f.images].Program.Image
		if lo, hi := im.SealedRange(); lo < hi {
			f.sealed = append(f.sealed, sealed{f.images, lo, hi})
		}
		for _, s := range im.Sections {
			if !s.Writable && s.Addr > 0 && len(s.Data) > 0 {
				f.ranges = append(f.ranges, fixed{f.images, s.Addr, s.Data})
			}
		}
	}
}

// read reads from there, if all of it is.
func (f *readOnly) read(r *Recorder, addr uint64, to []byte) bool {
	f.grow(r.plan.Base.Parts)
	for i := range f.ranges {
		x := &f.ranges[i]
		at := addr - r.code.Bias(x.image) - x.lo
		if at < uint64(len(x.data)) && uint64(len(to)) <= uint64(len(x.data))-at {
			copy(to, x.data[at:])
			return true
		}
	}
	return false
}

// holds is what sealed data holds, if that is known. It is not sure: the process may have made it
// writable anew, as those do that hook calls.
func (f *readOnly) holds(r *Recorder, addr uint64, to []byte) bool {
	f.grow(r.plan.Base.Parts)
	for i := range f.sealed {
		x := &f.sealed[i]
		bias := r.code.Bias(x.image)
		at, n := addr-bias, uint64(len(to))
		if at < x.lo || at >= x.hi || n > x.hi-at {
			continue
		}
		im := r.plan.Base.Parts[x.image].Program.Image
		for done := uint64(0); done < n; {
			from := (at + done) &^ 7
			word, relative, ok := im.Sealed(from)
			if relative {
				word += bias
			}
			if !ok {
				if word, ok = f.seen[from+bias]; !ok {
					return false
				}
			}
			var bytes [8]byte
			binary.LittleEndian.PutUint64(bytes[:], word)
			done += uint64(copy(to[done:], bytes[at+done-from:]))
		}
		return true
	}
	return false
}

// learn notes a word that is confirmed, if it is of sealed data.
func (f *readOnly) learn(r *Recorder, addr uint64, word []byte) {
	for i := range f.sealed {
		x := &f.sealed[i]
		if at := addr - r.code.Bias(x.image); at-x.lo < x.hi-x.lo && at%8 == 0 {
			if f.seen == nil {
				f.seen, f.names = map[uint64]uint64{}, map[uint64]string{}
			}
			to := binary.LittleEndian.Uint64(word)
			f.seen[addr] = to
			if name := r.plan.Base.Parts[x.image].Program.Image.Imports()[at]; name != "" {
				f.names[to] = name
			}
		}
	}
}

// name is that of a function of another image, by its address or that of a stub which leads there;
// "": it is not known.
func (f *readOnly) name(r *Recorder, addr uint64) string {
	if name := f.names[addr]; name != "" {
		return name
	}
	for i := range r.plan.Base.Parts {
		if name := r.plan.Base.Parts[i].Program.Image.Imports()[addr-r.code.Bias(i)]; name != "" {
			return name
		}
	}
	return ""
}
