package traced

import (
	"encoding/hex"
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/covered"
	"wpptrace/compress/wpp/pathprofile"
	"wpptrace/compress/wpp/store"
	"wpptrace/internal/remedy"
	"wpptrace/loader/cfg"
	"wpptrace/loader/image"
	"wpptrace/loader/plan"
	"wpptrace/loader/plan/planner"
	"wpptrace/loader/privilege"
	"wpptrace/query"
)

// A Selection says which routines to trace, in which images, and by what to choose their probes.
// The zero value is all of the executable.
type Selection struct {
	// Only and Not are matched against demangled names: a routine is traced whose name one of Only
	// matches, or if there are none, and none of Not. An expression that begins with a library's
	// base name and a colon is for that library.
	Only, Not []*regexp.Regexp
	// Complete admits routines that need slow, single-stepped probes.
	Complete bool
	// Weights is a snapshot of the same program by which probes are chosen: where they are hit
	// least.
	Weights string
	// Libraries are globs of the shared libraries to trace too, by base name, path, soname, or the
	// name under which the executable needs them.
	Libraries []string
	// Windows says that the recording begins and ends again and again: loops have a probe each.
	Windows bool
	// Values says that values are recorded: loops have a probe each, and Program.Loads is made.
	Values bool
	// Others says that other programs are recorded too: an expression may be meant for one of them.
	Others bool

	// Chooser chooses the routines to trace of a large image where neither Only nor Not says that;
	// nil: all are.
	Chooser Chooser

	image string // the library's name and a colon; "": the executable
	room  room
}

// A Chooser chooses the routines of an image to trace. The loading of the image calls its methods,
// on its own goroutine, and waits for them.
type Chooser interface {
	// Addresses are link-time addresses in an image of which a part may be recovered, and how often
	// each was seen to run: those of its routines are recovered that they are in most often, at
	// most so many of them, with small ones that these call, and with what all depend on. None: it
	// is refused if it is large, and else recovered as a whole. The image is read from the file.
	Addresses(f *os.File, im *image.Image) (addresses map[uint64]uint64, routines int)
	// Routines are those to trace of the routines that were recovered; nil: all.
	Routines(f *os.File, c *cfg.Program) map[*cfg.Routine]bool
}

// options applies the selection to a program.
func (s Selection) options(f *os.File, c *cfg.Program, name string) (planner.Options, error) {
	o := planner.Options{Complete: s.Complete, Distrust: len(s.Libraries) > 0,
		EveryRound: s.Windows || s.Values}
	var err error
	if o.Weights, err = readWeights(s.Weights, c.Image, s.mayMiss()); err != nil {
		return planner.Options{}, err
	}
	if len(s.Only)+len(s.Not) == 0 {
		if s.Chooser == nil {
			return o, nil
		}
		if chosen := s.Chooser.Routines(f, c); chosen != nil {
			o.Select, o.Busy = func(r *cfg.Routine) bool { return chosen[r] }, true
		}
		return o, nil
	}
	o.Select = func(r *cfg.Routine) bool {
		return (len(s.Only) == 0 || s.matches(s.Only, r)) && !s.matches(s.Not, r)
	}
	for _, r := range c.Routines {
		if o.Select(r) {
			return o, nil
		}
	}
	if s.mayMiss() {
		return o, nil
	}
	return planner.Options{}, remedy.Errorf(remedy.Select,
		"select routines of %s: none of %d is left",
		name, len(c.Routines))
}

// readWeights counts how often the blocks of an image ran in a recording of it; nil if there is
// none. mayMiss: another image may have been recorded.
func readWeights(path string, im *image.Image, mayMiss bool) (w *planner.Weights, err error) {
	if path == "" {
		return nil, nil
	}
	if im.BuildID == "" && mayMiss {
		return nil, nil
	}
	if im.BuildID == "" {
		return nil, remedy.Errorf(remedy.Link, "weigh %s by %s: the program has no build id, so "+
			"that nothing says whether that is a recording of it", im.Name, path)
	}
	var s *wpp.Snapshot
	err = privilege.AsUser(func() error {
		s, err = store.ReadFile(path, pathprofile.Kind, covered.Kind)
		return err
	})
	if err != nil { // be it that it is cut off: what ran later may have run most
		return nil, err
	}
	if err := covered.CheckPaths(path, s); err != nil {
		return nil, err
	}
	for i := range s.Images {
		if id := hex.EncodeToString(s.Images[i].BuildID); id == im.BuildID {
			blocks, entries, err := query.BlockCounts(s, i)
			if err != nil {
				return nil, fmt.Errorf("count the blocks of %s: %w", path, err)
			}
			return &planner.Weights{Blocks: blocks, Entries: entries}, nil
		}
	}
	if mayMiss {
		return nil, nil
	}
	return nil, remedy.Errorf(remedy.OwnWeights, "weigh %s by %s: that is a recording of another "+
		"build", im.Name, path)
}

// checkMatches fails when an expression matches no routine.
func checkMatches(list []*regexp.Regexp, c *cfg.Program, name string) error {
	for _, re := range list {
		matches := func(r *cfg.Routine) bool { return Selection{}.matches([]*regexp.Regexp{re}, r) }
		if !slices.ContainsFunc(c.Routines, matches) {
			kind, hint := meant(c, re)
			return remedy.Errorf(kind, "select routines of %s: %q matches none of %d routines%s",
				name, re, len(c.Routines), hint)
		}
	}
	return nil
}

// matches reports whether any of the expressions matches the demangled name.
func (s Selection) matches(list []*regexp.Regexp, r *cfg.Routine) bool {
	for _, re := range list {
		if re.MatchString(r.Name) || s.image != "" && re.MatchString(s.image+r.Name) {
			return true
		}
	}
	return false
}

// Unmatched lists which of some expressions of the selection match no routine of a plan, neither of
// the executable nor of its libraries.
func (s Selection) Unmatched(list []*regexp.Regexp, p *plan.Plan) (unmatched []*regexp.Regexp) {
	for _, re := range list {
		if !s.matchesAny(re, p) {
			unmatched = append(unmatched, re)
		}
	}
	return unmatched
}

func (s Selection) matchesAny(re *regexp.Regexp, p *plan.Plan) bool {
	for i, part := range p.Parts {
		if s.image = ""; i > 0 {
			s.image = path.Base(part.Program.Image.Name) + ":"
		}
		if slices.ContainsFunc(part.Program.Routines,
			func(r *cfg.Routine) bool { return s.matches([]*regexp.Regexp{re}, r) }) {
			return true
		}
	}
	return false
}

// Wants reports whether the selection names a library, by any of what it is called.
func (s Selection) Wants(called ...string) bool {
	return slices.ContainsFunc(s.Libraries,
		func(glob string) bool { return MatchesLibrary(glob, called...) })
}

// MatchesLibrary reports whether a glob of Selection.Libraries matches any of what a library is
// called, or the base name of that.
func MatchesLibrary(glob string, called ...string) bool {
	return slices.ContainsFunc(called, func(name string) bool {
		base, _ := path.Match(glob, path.Base(name))
		whole, _ := path.Match(glob, name)
		return base || whole
	})
}
