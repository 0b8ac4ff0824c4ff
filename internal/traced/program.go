package traced

import (
	"cmp"
	"fmt"
	"os"
	"runtime/debug"

	"wpptrace/internal/remedy"
	"wpptrace/loader/attach"
	"wpptrace/loader/cfg"
	"wpptrace/loader/image"
	"wpptrace/loader/loads"
	"wpptrace/loader/plan"
	"wpptrace/loader/plan/planner"
	"wpptrace/loader/target"
	routinenames "wpptrace/query/names"
)

// A Program is what is known of an executable, or of a library, before anything is attached.
type Program struct {
	Image *image.Image // read from the file as it is needed: that stays open
	Plan  *plan.Plan   // with the libraries that a recording has added
	Loads *loads.Plan  // of Plan, where values are recorded: to be added to by it alone; else nil

	selects   func(r *cfg.Routine) bool // what was selected; nil: all
	obstacles []attach.Obstacle         // in the process that it was planned for
}

// IsPart reports whether some routines were selected, and not all of them.
func (p *Program) IsPart() bool { return p.selects != nil }

// CheckRecordable fails when there is nothing that a recording could record.
func (p *Program) CheckRecordable(name string) error {
	if refusal := p.Refusal(); refusal != "" {
		return remedy.Errorf(remedy.ListEach, "plan probes of %s: %s", name, refusal)
	}
	if len(p.Plan.Sites) == 0 {
		return remedy.Errorf(remedy.Select, "plan probes of %s: there is no place for any", name)
	}
	return nil
}

// Refusal says why none of the routines that are selected can be traced; "" if one can, or none is
// selected.
func (p *Program) Refusal() string {
	selected, leftOut := 0, (*plan.Routine)(nil)
	for _, r := range p.Plan.Routines {
		switch {
		case p.selects != nil && !p.selects(r.Routine):
		case r.Traced():
			return ""
		default:
			if selected++; leftOut == nil || p.inTheWay(r) == r.LeftOut {
				leftOut = r
			}
		}
	}
	if leftOut == nil {
		return ""
	}
	return fmt.Sprintf("none of the %d routines that are selected can be traced, as %s: %s",
		selected, routinenames.Fit(leftOut.Name, nameColumns), leftOut.LeftOut)
}

// Load reads an executable, or a library, and plans its probes. name is what errors call it. The
// file is read until the program is not needed any more. Cost: some seconds where it is large.
func Load(f *os.File, name string, sel Selection) (p *Program, err error) {
	return loadAround(func(*image.Image) []attach.Obstacle { return nil }, f, name, sel)
}

// LoadOf is Load for the executable of a process, which is open: routines that cannot be traced in
// the process are left out. See attach.Obstacles.
func LoadOf(in *target.Process, exe *os.File, sel Selection) (*Program, error) {
	return loadAround(func(im *image.Image) []attach.Obstacle {
		list, _ := attach.Obstacles(in, im, exe) // what it fails for, attaching fails for
		return list
	}, exe, in.File, sel)
}

// LoadLibrary is Load for a library that a process has mapped, and whose file is open. Routines
// that cannot be traced in the process are left out; it fails where attach.LibraryObstacles does.
// name is the base name: expressions of the selection that begin with it and a colon count too.
func LoadLibrary(in *target.Process, f *os.File, name string, sel Selection) (*Program, error) {
	sel.image = name + ":"
	var refused error
	p, err := loadAround(func(im *image.Image) (list []attach.Obstacle) {
		list, refused = attach.LibraryObstacles(in, im, f)
		return list
	}, f, name, sel)
	if err = cmp.Or(err, refused); err != nil {
		return nil, err
	}
	return p, nil
}

// loadAround is Load, but that routines are left out that obstacles are in.
func loadAround(
	obstacles func(*image.Image) []attach.Obstacle, f *os.File, name string, sel Selection,
) (p *Program, err error) {
	err = reading(f, name, &sel, func() (err error) {
		p, err = readProgram(f, name, sel, obstacles)
		return err
	})
	return p, err
}

// reading has a file read within the memory that there is.
func reading(f *os.File, name string, sel *Selection, read func() error) (err error) {
	defer func() { // a file that we misunderstand must not end us while its process may be stopped
		if cause := recover(); cause != nil {
			err = fmt.Errorf("plan probes of %s: %v: this is a mistake of wpptrace's: "+
				"report it, with the file", name, cause)
		}
	}()
	defer debug.SetGCPercent(debug.SetGCPercent(garbage(f)))
	sel.room = newRoom(name)
	end, err := sel.room.begin(f)
	if err != nil {
		return err
	}
	defer end()
	return read()
}

// Obstructed says how many routines were left out for what the process has done to its code, and
// for what, as one of them.
func (p *Program) Obstructed() (routines int, why string) {
	for _, r := range p.Plan.Routines {
		if obstacle := p.inTheWay(r); obstacle != "" && obstacle == r.LeftOut {
			routines, why = routines+1, obstacle
		}
	}
	return routines, why
}

func (p *Program) inTheWay(r *plan.Routine) string { return attach.InTheWay(p.obstacles, r.Ranges) }

// CheckProcess fails when a routine that is traced cannot be in another process of the program,
// whose file is open.
func (p *Program) CheckProcess(in *target.Process, exe *os.File) error {
	list, _ := attach.Obstacles(in, p.Image, exe) // what it fails for, attaching fails for
	for _, r := range p.Plan.Routines {
		if why := attach.InTheWay(list, r.Ranges); r.Traced() && why != "" {
			return fmt.Errorf("plan probes of %s: %s, unlike in the process that it was planned "+
				"for: %s",
				in.File, routinenames.Fit(r.Name, nameColumns), why)
		}
	}
	return nil
}

// planGarbage is how much garbage there may be when the collector runs, in percent of what is
// alive, while a program is planned. In some virtual machines the first touch of a page takes 20
// us, longer than the collector takes for one that is touched already: with less than the usual
// 100, python3 was planned 6% faster there.
const planGarbage = 70

// garbage is planGarbage, but less for a large file: most of what is alive then is the file, which
// the collector need not look through.
func garbage(f *os.File) (percent int) {
	const largeFile, little, largest, least = 64 << 20, 20, 128 << 20, 10
	switch st, err := f.Stat(); {
	case err == nil && st.Size() >= largest:
		return least
	case err == nil && st.Size() >= largeFile:
		return little
	}
	return planGarbage
}

func readProgram(
	f *os.File, name string, sel Selection, obstacles func(*image.Image) []attach.Obstacle,
) (*Program, error) {
	c, o, err := sel.read(f, name)
	if err != nil {
		return nil, err
	}
	inTheWay := obstacles(c.Image)
	if len(inTheWay) > 0 {
		o.Refuse = func(r *cfg.Routine) string { return attach.InTheWay(inTheWay, r.Ranges) }
	}
	p, err := planner.Make(c, o)
	if err != nil {
		return nil, err
	}
	var l *loads.Plan
	if sel.Values {
		l, err = loads.Make(p, loads.Options{Extra: sel.image == "", Complete: sel.Complete})
		if err != nil {
			return nil, err
		}
	}
	return &Program{c.Image, p, l, o.Select, inTheWay}, nil
}

// read reads a file, recovers its routines and says which of them are selected.
func (s Selection) read(f *os.File, name string) (*cfg.Program, planner.Options, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, planner.Options{}, fmt.Errorf("look at %s: %w", name, err)
	}
	im, err := image.Open(f, st.Size(), name)
	if err != nil {
		return nil, planner.Options{}, err
	}
	c, err := s.recover(f, im, name)
	if err != nil {
		return nil, planner.Options{}, err
	}
	o, err := s.options(f, c, name)
	return c, o, err
}

// nameColumns is how wide a routine's name is in an error of one line at most.
const nameColumns = 60
