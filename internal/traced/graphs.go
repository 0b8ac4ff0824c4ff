package traced

import (
	"errors"
	"os"

	"wpptrace/loader/attach"
	"wpptrace/loader/cfg"
	"wpptrace/loader/image"
	"wpptrace/loader/target"
)

// Graphs are the control-flow graphs of an executable, or of a library, in a process: a Program
// without a plan. They are read-only.
type Graphs struct {
	*cfg.Program
	selects   func(r *cfg.Routine) bool // nil: all
	obstacles []attach.Obstacle
}

// GraphsOf recovers those of the executable of a process, which is open. The file is read until
// they are not needed any more. Somebody else's breakpoints are left to who puts probes where they
// stand. Cost: half of that of LoadOf.
func GraphsOf(in *target.Process, exe *os.File, sel Selection) (*Graphs, error) {
	return graphs(exe, in.File, sel, func(im *image.Image) ([]attach.Obstacle, error) {
		return attach.Obstacles(in, im, exe)
	})
}

// GraphsOfLibrary is GraphsOf for a library that a process has mapped; name is as for LoadLibrary.
func GraphsOfLibrary(in *target.Process, f *os.File, name string, sel Selection) (*Graphs, error) {
	sel.image = name + ":"
	return graphs(f, name, sel, func(im *image.Image) ([]attach.Obstacle, error) {
		return attach.LibraryObstacles(in, im, f)
	})
}

func graphs(f *os.File, name string, sel Selection,
	obstacles func(*image.Image) ([]attach.Obstacle, error)) (g *Graphs, err error) {
	err = reading(f, name, &sel, func() error {
		c, o, err := sel.read(f, name)
		if err != nil {
			return err
		}
		list, err := obstacles(c.Image)
		if errors.Is(err, attach.ErrBreakpoint) {
			err = nil
		}
		g = &Graphs{c, o.Select, list}
		return err
	})
	if err != nil {
		return nil, err
	}
	return g, nil
}

// LeftOut says why a routine is not traced; "": it can be, wherever it has instructions that may
// carry a probe.
func (g *Graphs) LeftOut(r *cfg.Routine) string {
	switch {
	case r.LeftOut != "":
		return r.LeftOut
	case g.selects != nil && !g.selects(r):
		return "it is not selected"
	}
	return attach.InTheWay(g.obstacles, r.Ranges)
}
