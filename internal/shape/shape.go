package shape

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/overlapped"
	"wpptrace/internal/original"
	"wpptrace/internal/overlapping"
	"wpptrace/loader/cfg"
	"wpptrace/loader/cfg/recovery"
	"wpptrace/loader/image"
)

// Shapes are those of the routines of a snapshot.
type Shapes struct {
	Of []overlapped.Shape // by index in Snapshot.Routines, ascending, of those whose paths ran
	// why others that ran have none, by reason the number of routines
	LeftOut map[string]int
}

// Of finds the shapes of a snapshot in the files that are named, of those that are the same builds
// as what was recorded, and where the other files were. It fails where a file that is named is none
// that was recorded. Cost: that of finding the routines in each file, which a large file takes
// seconds for.
func Of(s *wpp.Snapshot, files []string) (*Shapes, error) {
	x := &Shapes{LeftOut: map[string]int{}}
	named, err := match(s, files)
	if err != nil {
		return nil, err
	}
	for image := range s.Images {
		ran := 0
		for i := range s.Routines {
			if s.Routines[i].Image == image && len(s.Routines[i].Blocks) > 0 {
				ran++
			}
		}
		if ran == 0 {
			continue
		}
		if err := x.read(s, image, named[image]); err != nil {
			x.LeftOut[err.Error()] += ran
		}
	}
	slices.SortFunc(x.Of, func(a, b overlapped.Shape) int {
		return cmp.Compare(a.Routine, b.Routine)
	})
	return x, nil
}

// anyKnown fails where paths ran, and no routine has a shape: any number of pairs may have run
// then.
func (x *Shapes) anyKnown(s *wpp.Snapshot) error {
	ran := func(y wpp.Symbol) bool { return !y.IsMark }
	if len(x.Of) > 0 || !slices.ContainsFunc(s.Symbols, ran) {
		return nil
	}
	for _, reason := range slices.Sorted(maps.Keys(x.LeftOut)) {
		return fmt.Errorf("of no routine that ran is the graph known: %s: "+
			"--binary FILE names a copy of what was recorded", reason)
	}
	return errors.New("it does not say which blocks ran, as one that wpptrace -p records does")
}

// match finds out of which images files are, by image.
func match(s *wpp.Snapshot, files []string) (map[int]string, error) {
	named := map[int]string{}
	for _, file := range files {
		var first error
		for image := range s.Images {
			im, _, err := original.OpenBinary(s, image, file)
			if err == nil {
				im.Close()
				named[image], first = file, nil
				break
			}
			first = cmp.Or(first, err)
		}
		if first != nil {
			return nil, fmt.Errorf("%w: --binary FILE names a copy of what was recorded", first)
		}
	}
	return named, nil
}

func (x *Shapes) read(s *wpp.Snapshot, image int, named string) error {
	im, _, err := original.OpenBinary(s, image, named)
	if err != nil {
		return err
	}
	defer im.Close()
	at := map[uint64]int{}
	for i := range s.Routines {
		if r := &s.Routines[i]; r.Image == image {
			at[r.Entry] = i
		}
	}
	program, err := recovery.Part(im, func(c recovery.Candidate) bool {
		i, ok := at[c.Ranges[c.Entry][0]]
		return ok && len(s.Routines[i].Blocks) > 0
	})
	if err != nil {
		return err
	}
	if lacks(program, s, at) && codeOf(im) < largest { // for it depends on what did not run
		if program, err = recovery.Recover(im); err != nil {
			return err
		}
	}
	number := func(r *cfg.Routine) int {
		if i, ok := at[r.Addr]; ok && s.Routines[i].LeftOut == "" {
			return i
		}
		return -1
	}
	for entry, i := range at {
		if len(s.Routines[i].Blocks) == 0 {
			continue
		}
		r := program.At(entry)
		if why := differs(r, &s.Routines[i]); why != "" {
			x.LeftOut[why]++
			continue
		}
		shape, err := overlapping.ShapeIn(program, r, number)
		if err != nil {
			x.LeftOut[err.Error()]++
			continue
		}
		x.Of = append(x.Of, *shape)
	}
	return nil
}

// largest is how many bytes of code are recovered as a whole, as package recovery has it where most
// of it is selected.
const largest = 64 << 20

func codeOf(im *image.Image) (size uint64) {
	for _, r := range im.Ranges {
		size += r.Hi - r.Lo
	}
	return size
}

// lacks reports whether a program that is recovered in part leaves out a routine that ran, by its
// entry.
func lacks(p *cfg.Program, s *wpp.Snapshot, at map[uint64]int) bool {
	for entry, i := range at {
		if r := p.At(entry); len(s.Routines[i].Blocks) > 0 && (r == nil || r.LeftOut != "") {
			return true
		}
	}
	return false
}

// differs says why a routine of a file is not that of a snapshot; "" if it is.
func differs(r *cfg.Routine, recorded *wpp.Routine) string {
	switch {
	case r == nil || r.Addr != recorded.Entry:
		return "the file has no such routine"
	case r.LeftOut != "":
		return r.LeftOut
	case !slices.EqualFunc(r.Blocks, recorded.Blocks, func(b cfg.Block, w wpp.Block) bool {
		return b.Lo == w.Addr && len(b.Insns) == len(w.Lengths)
	}):
		return fmt.Sprintf("it was recorded with another graph, as %s", r.Name)
	}
	return ""
}
