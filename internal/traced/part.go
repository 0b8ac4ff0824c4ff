package traced

import (
	"cmp"
	"maps"
	"os"
	"regexp"
	"slices"

	"wpptrace/internal/remedy"
	"wpptrace/loader/cfg"
	"wpptrace/loader/cfg/recovery"
	"wpptrace/loader/image"
	"wpptrace/loader/plan"
)

// large is how many bytes of code make an image one of which no more is recovered than is needed:
// less takes a second. Of one of middling size no more is where samples say what is needed. They
// are variables for tests.
var large, middling = 8 << 20, 4 << 20

// How many bytes of code there are for each probe: programs that were measured have 40 to 55, and
// none should have so many that it is refused though it could be planned.
const usualPerProbe, mostPerProbe = 50, 80

// recover finds the routines of an image; of a large one those alone that names select, and what
// they depend on. An expression that matches nothing is a mistake. So many routines that there
// cannot be enough probes are refused before anything is recovered.
func (s Selection) recover(f *os.File, im *image.Image, name string) (*cfg.Program, error) {
	if s.Chooser != nil && MayBePart(im) && len(s.Only)+len(s.Not) == 0 {
		survey, err := recovery.Examine(im) // while samples are taken
		if err != nil {
			return nil, err
		}
		if addresses, most := s.Chooser.Addresses(f, im); len(addresses) > 0 {
			hot := hottest(survey, addresses, most)
			addCallees(survey, hot)
			return survey.Part(func(r recovery.Candidate) bool { return hot[r.Ranges[0][0]] })
		}
		if IsLarge(im) {
			return nil, remedy.Errorf(remedy.FewerProbes, "plan %s: %d MB of code are too much to "+
				"trace at a time, and no samples say which of it runs", name, codeOf(im)>>20)
		}
	}
	code := codeOf(im)
	if len(s.Only) == 0 && code/mostPerProbe > plan.MaxSites {
		return nil, remedy.Errorf(remedy.FewerProbes, "plan %s: %d MB of code need some %d "+
			"probes, %d are possible", name, code>>20, code/usualPerProbe, plan.MaxSites)
	}
	if !IsLarge(im) || len(s.Only) == 0 {
		if err := s.room.check(remedy.LessMemory, allNeeds(uint64(code))); err != nil {
			return nil, err
		}
		c, err := recovery.Recover(im)
		if err == nil && !s.mayMiss() {
			err = checkMatches(slices.Concat(s.Only, s.Not), c, name)
		}
		return c, err
	}
	met := map[*regexp.Regexp]bool{}
	notes := func(list []*regexp.Regexp, r *cfg.Routine) (any bool) {
		for _, re := range list {
			if s.matches([]*regexp.Regexp{re}, r) {
				met[re], any = true, true
			}
		}
		return any
	}
	c, err := recovery.Part(im, func(r recovery.Candidate) bool {
		routine := &cfg.Routine{Name: r.Name()}
		notes(s.Not, routine)
		return notes(s.Only, routine)
	})
	if err != nil || s.mayMiss() {
		return c, err
	}
	unmet := slices.DeleteFunc(slices.Concat(s.Only, s.Not),
		func(re *regexp.Regexp) bool { return met[re] })
	if checkMatches(unmet, c, name) == nil {
		return c, nil
	}
	return nil, checkMatches(unmet, namesOf(im, c), name)
}

// Of a large image no more than mostHot routines are recovered for the samples that are in them,
// nor more than mostCode bytes of code: each of them may depend on others, and all are planned
// before the first answer.
const mostHot, mostCode = 400, 1 << 20

// hottest are the routines, by their first addresses, that most of some samples are in; most is how
// many there may be, of which there is one whatever it is.
func hottest(survey *recovery.Survey, samples map[uint64]uint64, most int) map[uint64]bool {
	type routine struct{ at, size, samples uint64 }
	var list []routine
	addresses := slices.Sorted(maps.Keys(samples))
	survey.Each(func(c recovery.Candidate) {
		r := routine{at: c.Ranges[0][0]}
		for _, x := range c.Ranges {
			r.size += x[1] - x[0]
			i, _ := slices.BinarySearch(addresses, x[0])
			for ; i < len(addresses) && addresses[i] < x[1]; i++ {
				r.samples += samples[addresses[i]]
			}
		}
		if r.samples > 0 {
			list = append(list, r)
		}
	})
	slices.SortFunc(list, func(a, b routine) int {
		return cmp.Or(cmp.Compare(b.samples, a.samples), cmp.Compare(a.at, b.at))
	})
	hot, size := map[uint64]bool{}, uint64(0)
	for _, r := range list[:min(len(list), mostHot, max(most, 1))] {
		if size += r.size; size > mostCode && len(hot) > 0 {
			break
		}
		hot[r.at] = true
	}
	return hot
}

// addCallees adds small routines that some call, by their first addresses: they may be called often
// and not be seen by samples. There are as many of them as of the others at most, or some.
func addCallees(survey *recovery.Survey, hot map[uint64]bool) {
	const small, some = 1 << 10, 50 // bytes of code
	callees := map[uint64]bool{}
	survey.EachCall(func(caller, callee recovery.Candidate) {
		size := uint64(0)
		for _, x := range callee.Ranges {
			size += x[1] - x[0]
		}
		if at := callee.Ranges[0][0]; hot[caller.Ranges[0][0]] && !hot[at] && size <= small &&
			len(callees) < max(len(hot), some) {
			callees[at] = true
		}
	})
	maps.Copy(hot, callees)
}

// MayBePart reports whether an image has so much code, from 4 MB on, that no more of it is
// recovered than is needed where a Chooser says what that is.
func MayBePart(im *image.Image) bool { return codeOf(im) >= middling || IsLarge(im) }

// IsLarge reports whether an image has so much code, from 8 MB on, that no more of it is recovered
// than is needed.
func IsLarge(im *image.Image) bool { return codeOf(im) >= large }

// codeOf is how many bytes of code an image has.
func codeOf(im *image.Image) (n int) {
	for i := range im.Ranges {
		n += int(im.Ranges[i].Hi - im.Ranges[i].Lo)
	}
	return n
}

// namesOf lists all routines of an image, but their names and where they are, in a program of which
// a part is recovered.
func namesOf(im *image.Image, c *cfg.Program) *cfg.Program {
	all := &cfg.Program{Image: im}
	recovered := map[uint64]bool{}
	for _, r := range c.Routines {
		recovered[r.Addr] = true
		all.Routines = append(all.Routines, r)
	}
	// it has been done without an error
	_, _ = recovery.Part(im, func(r recovery.Candidate) bool {
		if at := r.Ranges[r.Entry][0]; !recovered[at] {
			all.Routines = append(all.Routines, &cfg.Routine{Name: r.Name(), Addr: at,
				Ranges: r.Ranges})
		}
		return false
	})
	return all
}

// mayMiss reports whether an expression that matches nothing may be meant for another image.
func (s Selection) mayMiss() bool { return len(s.Libraries) > 0 || s.Others }
