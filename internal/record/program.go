package main

import (
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"runtime/debug"

	"wpptrace/compress/wpp"
	"wpptrace/loader/cfg"
	"wpptrace/loader/image"
	"wpptrace/loader/plan"
	"wpptrace/loader/plan/planner"
	"wpptrace/loader/privilege"
	"wpptrace/query"
	"wpptrace/query/report"
)

// A program is what is known of a target's executable before anything is attached.
type program struct {
	image *image.Image
	cfg   *cfg.Program
	plan  *plan.Plan

	selects func(r *cfg.Routine) bool // what was selected; nil: all
}

// recordable fails when there is nothing that a recording could record.
func (p *program) recordable(name string) error {
	if refusal := p.refusal(); refusal != "" {
		return fmt.Errorf("plan probes of %s: %s; wpptrace plan -v tells of each", name, refusal)
	}
	if len(p.plan.Sites) == 0 {
		return fmt.Errorf("plan probes of %s: there is no place for any: select more routines with -F", name)
	}
	return nil
}

// refusal says why none of the routines that are selected can be observed; "" if one can, or none is
// selected.
func (p *program) refusal() string {
	selected, leftOut := 0, (*plan.Routine)(nil)
	for _, r := range p.plan.Routines {
		switch {
		case p.selects != nil && !p.selects(r.Routine):
		case r.Traced():
			return ""
		default:
			selected++
			leftOut = r
		}
	}
	if leftOut == nil {
		return ""
	}
	return fmt.Sprintf("none of the %d routines that are selected can be observed, as %s: %s", selected, report.Fit(leftOut.Name, 60), leftOut.LeftOut)
}

// loadProgram reads and plans an executable. name is what messages call it.
func loadProgram(f *os.File, name string, sel selection) (p *program, err error) {
	defer func() { // a file that we misunderstand must not end us while its process may be stopped
		if cause := recover(); cause != nil {
			p, err = nil, fmt.Errorf("plan probes of %s: %v: this is a mistake of wpptrace's: report it, with the file", name, cause)
		}
	}()
	defer debug.SetGCPercent(debug.SetGCPercent(planGarbage))
	return readProgram(f, name, sel)
}

// goProgram is what there is to say of one.
const goProgram = "a Go program: what is written in Go cannot be traced, only its C functions are"

// planGarbage is how much garbage there may be when the collector runs, in percent of what is alive,
// while a program is planned. In some virtual machines the first touch of a page takes 20 us, longer
// than the collector takes for one that is touched already: with less than the usual 100, python3 was
// planned 6% faster there.
const planGarbage = 70

func readProgram(f *os.File, name string, sel selection) (*program, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("look at %s: %w", name, err)
	}
	im, err := image.Open(f, st.Size(), name)
	if err != nil {
		return nil, err
	}
	c, err := cfg.Recover(im)
	if err != nil {
		return nil, err
	}
	o, err := sel.options(c, name)
	if err != nil {
		return nil, err
	}
	p, err := planner.Make(c, o)
	if err != nil {
		return nil, err
	}
	return &program{im, c, p, o.Select}, nil
}

// A selection says which routines to observe, and by what to choose probes: the values of -F, -N,
// --complete and --weights.
type selection struct {
	only, not []string // regular expressions
	complete  bool
	weights   string   // a snapshot
	libs      []string // globs: the values of --lib
	windows   bool     // the recording begins and ends again and again
	others    bool     // other programs are recorded too: an expression may be meant for one of them
	image     string   // the library's name and a colon, which an expression may begin with; "" for the executable
}

// options applies the selection to a program. An expression that matches nothing is a mistake.
func (s selection) options(c *cfg.Program, name string) (planner.Options, error) {
	mayMiss := len(s.libs) > 0 || s.others // an expression may be meant for another image
	only, err := compile("-F", s.only, c, name, mayMiss)
	if err != nil {
		return planner.Options{}, err
	}
	not, err := compile("-N", s.not, c, name, mayMiss)
	if err != nil {
		return planner.Options{}, err
	}
	o := planner.Options{Complete: s.complete, Distrust: len(s.libs) > 0, EveryRound: s.windows}
	if o.Weights, err = readWeights(s.weights, c.Image, mayMiss); err != nil {
		return planner.Options{}, err
	}
	if only == nil && not == nil {
		return o, nil
	}
	o.Select = func(r *cfg.Routine) bool { return (only == nil || s.matches(only, r)) && !s.matches(not, r) }
	for _, r := range c.Routines {
		if o.Select(r) {
			return o, nil
		}
	}
	if mayMiss {
		return o, nil
	}
	return planner.Options{}, fmt.Errorf("select routines of %s: -F and -N leave none of %d", name, len(c.Routines))
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
		return nil, fmt.Errorf("weigh %s by %s: the program has no build id, so that nothing tells whether that is a recording of it: link it with -Wl,--build-id, or leave --weights out",
			im.Name, path)
	}
	var s *wpp.Snapshot
	err = privilege.AsUser(func() error {
		s, _, err = readPart(path)
		return err
	})
	if err != nil { // be it that it is cut off: what ran later may have run most
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
	return nil, fmt.Errorf("weigh %s by %s: that is a recording of another build: record this one, or leave --weights out", im.Name, path)
}

func compile(flag string, expressions []string, c *cfg.Program, name string, mayMiss bool) (list []*regexp.Regexp, err error) {
	for _, text := range expressions {
		re, err := regexp.Compile(text)
		if err != nil {
			return nil, usagef("read %s %q: %w", flag, text, err)
		}
		one := []*regexp.Regexp{re}
		found := false
		for _, r := range c.Routines {
			found = found || selection{}.matches(one, r)
		}
		if !found && !mayMiss {
			return nil, fmt.Errorf("select routines of %s: %s %q matches none of %d routines%s: wpptrace plan -v lists them; --lib observes those of shared libraries", name, flag, text, len(c.Routines), meant(c, text))
		}
		list = append(list, re)
	}
	return list, nil
}

// matches reports whether any of the expressions matches the demangled name.
func (s selection) matches(list []*regexp.Regexp, r *cfg.Routine) bool {
	for _, re := range list {
		if re.MatchString(r.Name) || s.image != "" && re.MatchString(s.image+r.Name) {
			return true
		}
	}
	return false
}
