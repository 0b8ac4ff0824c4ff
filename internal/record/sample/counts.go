package sample

import (
	"time"

	"wpptrace/loader/target"
)

// Counts are samples by where they were. The zero value is none. Those of one process may be added
// up.
type Counts struct {
	Period  time.Duration // of CPU time, about: one sample stands for so much
	CPUTime time.Duration // that the process has used meanwhile
	Wall    time.Duration // how long that was

	Kernel  uint64                   // in the kernel
	Images  map[target.FileID]*Image // in code of files
	JIT     map[string]*Unplaced     // in code of no file, by the name of its mapping
	Unknown uint64                   // where nothing was mapped any more when it was looked up
	Lost    uint64                   // there was no room to count them
}

// Bounds of what Counts keep, whatever a process does.
const (
	maxOffsets  = 1 << 20 // of an image
	maxImages   = 4096
	maxMappings = 256
	maxNames    = 4096 // of a mapping
)

// An Image is a file that samples were in the code of.
type Image struct {
	Name    string            // the path in the process's own mount namespace
	Offsets map[uint64]uint64 // samples by offset in the file
	Rest    uint64            // samples at further offsets, of which there are too many
}

// ShareOf is which share one image has of the samples in it and in those that with says.
func (c *Counts) ShareOf(id target.FileID, with func(target.FileID, *Image) bool) float64 {
	own, all := uint64(0), uint64(0)
	for other, i := range c.Images {
		switch n := i.Total(); {
		case other == id:
			own, all = n, all+n
		case with(other, i):
			all += n
		}
	}
	return float64(own) / float64(max(all, 1))
}

func (i *Image) add(offset, n uint64) {
	if _, ok := i.Offsets[offset]; !ok && len(i.Offsets) >= maxOffsets {
		i.Rest += n
		return
	}
	i.Offsets[offset] += n
}

// Total is how many samples were in the image.
func (i *Image) Total() uint64 {
	n := i.Rest
	for _, samples := range i.Offsets {
		n += samples
	}
	return n
}

// Sum sums up the samples of an image by what a function calls an offset in the file: the routine
// there, say, or its block. It is called once for each offset.
func Sum[K comparable](i *Image, of func(offset uint64) K) map[K]uint64 {
	sums := map[K]uint64{}
	for offset, n := range i.Offsets {
		sums[of(offset)] += n
	}
	return sums
}

// An Unplaced is code in no file: a just-in-time compiler's, as a rule, or the kernel's [vdso].
type Unplaced struct {
	Samples uint64
	Names   map[string]uint64 // of them, by the routine's name, as far as /tmp/perf-PID.map says it
}

func (u *Unplaced) add(name string, n uint64) {
	u.Samples += n
	if name == "" {
		return
	}
	if _, ok := u.Names[name]; ok || len(u.Names) < maxNames {
		u.Names[name] += n
	}
}

func (c *Counts) image(id target.FileID, name string) *Image {
	if c.Images == nil {
		c.Images = map[target.FileID]*Image{}
	}
	i := c.Images[id]
	if i == nil {
		if len(c.Images) >= maxImages {
			id, name = target.FileID{}, "other files"
		}
		if i = c.Images[id]; i == nil {
			i = &Image{Name: name, Offsets: map[uint64]uint64{}}
			c.Images[id] = i
		}
	}
	return i
}

func (c *Counts) addUnplaced(mapping, name string, n uint64) {
	if c.JIT == nil {
		c.JIT = map[string]*Unplaced{}
	}
	if c.JIT[mapping] == nil {
		if len(c.JIT) >= maxMappings {
			mapping, name = "other memory", ""
		}
		if c.JIT[mapping] == nil {
			c.JIT[mapping] = &Unplaced{Names: map[string]uint64{}}
		}
	}
	c.JIT[mapping].add(name, n)
}

// Total is how many samples there were, those included that were lost.
func (c *Counts) Total() uint64 {
	n := c.Kernel + c.Unknown + c.Lost + c.InJIT()
	for _, i := range c.Images {
		n += i.Total()
	}
	return n
}

// InJIT is how many samples were in code of no file.
func (c *Counts) InJIT() (n uint64) {
	for _, u := range c.JIT {
		n += u.Samples
	}
	return n
}

// Add adds others of the same process.
func (c *Counts) Add(o Counts) {
	c.Period = o.Period
	c.CPUTime += o.CPUTime
	c.Wall += o.Wall
	c.Kernel += o.Kernel
	c.Unknown += o.Unknown
	c.Lost += o.Lost
	for id, from := range o.Images {
		i := c.image(id, from.Name)
		for offset, n := range from.Offsets {
			i.add(offset, n)
		}
		i.Rest += from.Rest
	}
	for mapping, from := range o.JIT {
		named := uint64(0)
		for name, n := range from.Names {
			c.addUnplaced(mapping, name, n)
			named += n
		}
		c.addUnplaced(mapping, "", from.Samples-named)
	}
}
