package raw

import (
	"errors"
	"fmt"

	"wpptrace/compress/ops"
)

// A thread is what a reader knows of a thread: its open activations, by which it makes sure that
// what is said of them is true.
type thread struct {
	reader *Reader
	sink   ops.Sink
	open   []activation
	owed   uint64 // LeaveRoutine that must come next
	// something of the thread is not known: there may be activations that nothing gives the
	// beginning of
	holes bool
}

// An activation is one of a routine. It has begun when a path of it has run.
type activation struct {
	routine int32
	begun   bool
}

// execute does an operation of the current thread.
func (r *Reader) execute(op opcode) error {
	t := r.current
	if t.owed > 0 && op != leaveRoutine {
		return t.missing()
	}
	switch op {
	case enterRoutine:
		return t.enterRoutine()
	case leaveRoutine:
		return t.leaveRoutine()
	case newPath, newPaths:
		return t.newPath(op)
	}
	n, err := r.in.uvarint()
	if err != nil {
		return err
	}
	return t.mark(ops.Mark(op-gap), n)
}

func (t *thread) missing() error {
	return fmt.Errorf("%d LeaveRoutine are missing before it, after a return, a tail jump or "+
		"Unwind", t.owed)
}

func (t *thread) enterRoutine() error {
	routine, err := t.reader.routine()
	if err != nil {
		return err
	}
	if t.reader.open == mostOpen {
		return errTooDeep
	}
	t.reader.open++
	t.open = append(t.open, activation{routine: int32(routine)})
	t.sink.EnterRoutine(routine, ops.Unknown)
	return nil
}

func (t *thread) leaveRoutine() error {
	if t.owed == 0 {
		return errors.New("LeaveRoutine, but no path has ended by a return or a tail jump just " +
			"before, nor is there an Unwind")
	}
	innermost := t.open[len(t.open)-1]
	if !innermost.begun && !t.holes {
		return fmt.Errorf("LeaveRoutine of an activation of %.60q without a path",
			t.reader.routines[innermost.routine].Name)
	}
	t.owed--
	t.reader.open--
	t.open = t.open[:len(t.open)-1]
	t.sink.LeaveRoutine()
	return nil
}

func (t *thread) newPath(op opcode) error {
	path, err := t.reader.in.uvarint()
	times := uint64(1)
	if err == nil && op == newPaths {
		times, err = t.reader.in.uvarint()
	}
	if err != nil {
		return err
	}
	if len(t.open) == 0 {
		return fmt.Errorf("path %d, but no activation is open", path)
	}
	a := &t.open[len(t.open)-1]
	name := t.reader.routines[a.routine].Name
	table := &t.reader.paths
	sym := int(table.symbols.Symbol(int(a.routine), path))
	if sym == len(table.kinds) {
		return fmt.Errorf("path %d of %.60q has not been defined", path, name)
	}
	k := table.kinds[sym]
	t.holes = t.holes || k.start == ops.StartResume || k.end == ops.EndCut
	switch {
	case op == newPaths && !k.mayRepeat(times):
		return errTimes(path, name, times)
	case k.start == ops.StartEntry && a.begun:
		return fmt.Errorf("path %d of %.60q starts at the entry, but is not the first of its "+
			"activation", path, name)
	case k.start != ops.StartEntry && !a.begun && !t.holes:
		return fmt.Errorf("path %d of %.60q is the first of its activation, but does not start "+
			"at the entry, and nothing is missing before", path, name)
	}
	a.begun = true
	if k.returns() {
		t.owed = 1
	}
	t.sink.NewPath(int(a.routine), path, times)
	return nil
}

func (t *thread) mark(m ops.Mark, n uint64) error {
	switch m {
	case ops.Gap, ops.Resume, ops.Cut:
		t.holes = true
	case ops.Unwind:
		if open := uint64(len(t.open)); n > open && !t.holes {
			return fmt.Errorf("operation Unwind of %d activations, where %d are open", n, open)
		}
		t.owed = min(n, uint64(len(t.open)))
	}
	t.sink.Mark(m, n)
	return nil
}
