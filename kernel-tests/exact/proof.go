package exact

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"wpptrace/kernel-tests/truth"
)

// ErrInexact is the error of a record that differs from the truth; ErrDisturbed that of a target
// which behaved otherwise than it does alone.
var (
	ErrInexact   = errors.New("the record is not exact")
	ErrDisturbed = errors.New("the target was disturbed")
)

// Expect says what is known of a target beforehand.
type Expect struct {
	// handlers interrupt it at any instruction: the interrupted stream and the handlers are
	// compared apart
	Apart bool
	Execs bool // it executes its own file anew, which ends a record
	Cut   bool // faults, jumps or exits of other threads cut paths off
	// Static says that the C library is part of the image. Its setjmp, longjmp and the like do not
	// count as the program's own code.
	Static bool
	// Aside names routines that are not compared, because what they do differs from run to run.
	Aside []string
	Limit int // the most steps that the truth may take
}

// A Proof is the outcome of comparing records with the truth.
type Proof struct {
	Truth              *truth.Trace
	Default, Complete  truth.Coverage
	Record, AllRecords *Record // without and with --complete
}

// Prove runs a target bare, single-stepped, recorded, and recorded with --complete, and compares.
// What it returns next to an error is what was found before. It costs 10 to 20 us an instruction of
// the truth and about half a second for the rest.
//
// A virtual machine was seen to lose a step, once in thousands of runs, and oftener under load: a
// truth that a record contradicts is made again, until one has come out twice.
func Prove(ctx context.Context, w *Tracer, t Target, x Expect) (*Proof, error) {
	bare, err := t.Run(ctx)
	if err != nil {
		return nil, err
	}
	want, err := t.step(ctx, x)
	if err != nil {
		return nil, err
	}
	p, err := ProveAgainst(ctx, w, t, x, bare, want)
	if errors.Is(err, ErrInexact) {
		if again, e := t.stepUntilCertain(ctx, x, want); e == nil && !again.Equal(want) {
			return ProveAgainst(ctx, w, t, x, bare, again)
		}
	}
	return p, err
}

// Truth single-steps the target until a truth has come out twice, or a few times if it does not do
// the same each time.
func (t Target) Truth(ctx context.Context, x Expect) (*truth.Trace, error) {
	first, err := t.step(ctx, x)
	if err != nil {
		return nil, err
	}
	return t.stepUntilCertain(ctx, x, first)
}

// stepUntilCertain returns the first truth that comes out twice, the one that is known included;
// the last, if there is none in a few runs: the target does not do the same each time.
func (t Target) stepUntilCertain(ctx context.Context, x Expect,
	known *truth.Trace) (again *truth.Trace, err error) {
	const most = 4
	for seen := []*truth.Trace{known}; len(seen) <= most; seen = append(seen, again) {
		if again, err = t.step(ctx, x); err != nil || slices.ContainsFunc(seen, again.Equal) {
			break
		}
	}
	return again, err
}

func (t Target) step(ctx context.Context, x Expect) (*truth.Trace, error) {
	return truth.Run(ctx, truth.Options{
		Path: t.Path, Args: t.Args, Env: t.Env, Dir: t.Dir, Stdin: t.Stdin,
		FixedAddresses: t.FixedAddresses, Libraries: t.Libraries, Limit: x.Limit,
	})
}

// ProveAgainst is Prove with a truth and a bare run that were made before.
func ProveAgainst(ctx context.Context, w *Tracer, t Target, x Expect, bare Outcome,
	want *truth.Trace) (*Proof, error) {
	if x.Execs {
		want = UntilExec(want)
	}
	p := &Proof{Truth: want}
	var errs []error
	if e := sameOutcome(bare, steppedOutcome(want)); e != nil {
		errs = append(errs, fmt.Errorf("single-stepped: %w", e))
	}
	for _, run := range []struct {
		name     string
		flags    []string
		record   **Record
		coverage *truth.Coverage
	}{
		{"recorded", nil, &p.Record, &p.Default},
		{"recorded with --complete", []string{"--complete"}, &p.AllRecords, &p.Complete},
	} {
		r, traced, err := w.Record(ctx, t, run.flags...)
		if err == nil {
			*run.record, *run.coverage = r, ownCode(truth.Cover(want, r.Routines), x.Static)
			err = errors.Join(sameOutcome(bare, traced), r.Against(want, x))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", run.name, err))
		}
	}
	return p, errors.Join(errs...)
}

// Against compares a record from the first instruction on with the truth.
func (r *Record) Against(want *truth.Trace, x Expect) error {
	mode := truth.Exact
	if x.Apart {
		mode = truth.Apart
	}
	r = r.without(x.Aside)
	if x.Execs {
		want = r.withoutUnseenEnd(want)
	}
	err := truth.Compare(r.Streams, want, r.Routines, mode)
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrInexact, err)
	}
	if r.Stat.Lost != 0 || r.Stat.Gaps != 0 {
		err = errors.Join(err, fmt.Errorf("%d events lost in %d gaps", r.Stat.Lost, r.Stat.Gaps))
	}
	if r.Stat.Anomalies != 0 {
		err = errors.Join(err, fmt.Errorf("%d anomalies in the decoder", r.Stat.Anomalies))
	}
	if n := r.cuts(); n > 0 && !x.Cut {
		err = errors.Join(err,
			fmt.Errorf("%w: %d paths cut off where nothing cuts one", ErrInexact, n))
	}
	return err
}

// without is the record as if some routines had not been traced.
func (r *Record) without(names []string) *Record {
	if len(names) == 0 {
		return r
	}
	less := &Record{Stat: r.Stat, Routines: slices.Clone(r.Routines)}
	for i := range less.Routines {
		if slices.Contains(names, less.Routines[i].Name) {
			less.Routines[i].Traced = false
		}
	}
	for _, s := range r.Streams {
		kept := &truth.Stream{TID: s.TID}
		marks := s.Marks
		for i, pc := range s.Insns {
			for ; len(marks) > 0 && marks[0].Index <= i; marks = marks[1:] {
				kept.Marks = append(kept.Marks,
					truth.Mark{Index: len(kept.Insns), Kind: marks[0].Kind})
			}
			if routine, ok := less.Routines.Find(pc); !ok || routine.Traced {
				kept.Insns = append(kept.Insns, pc)
			}
		}
		for _, m := range marks {
			kept.Marks = append(kept.Marks, truth.Mark{Index: len(kept.Insns), Kind: m.Kind})
		}
		less.Streams = append(less.Streams, kept)
	}
	return less
}

// cuts counts the paths that were cut off, but for those that a thread's end cuts: with the C
// library inside, it dies in one.
func (r *Record) cuts() (n int) {
	for _, s := range r.Streams {
		for _, m := range s.Marks {
			if m.Kind == "cut" && m.Index < len(s.Insns) {
				n++
			}
		}
	}
	return n
}

// UntilExec is what the first thread of a trace executed before it came to the program's first
// instruction again.
func UntilExec(t *truth.Trace) *truth.Trace {
	insns := t.Threads[0].Insns
	if again := slices.Index(insns[1:], insns[0]); again >= 0 {
		insns = insns[:again+1]
	}
	return onlyThread(t, insns)
}

// withoutUnseenEnd takes from a truth that ends with an exec some instructions that the record does
// not have: an exec is no evidence of what ran without an event before it.
func (r *Record) withoutUnseenEnd(t *truth.Trace) *truth.Trace {
	const longest = 64
	insns, recorded := t.Threads[0].Insns, 0
	if len(r.Streams) > 0 {
		recorded = len(r.Streams[0].Insns)
	}
	traced := 0
	for i, pc := range insns {
		if routine, ok := r.Routines.Find(pc); ok && routine.Traced {
			traced++
		}
		if traced > recorded && i >= len(insns)-longest {
			return onlyThread(t, insns[:i])
		}
	}
	return t
}

func onlyThread(t *truth.Trace, insns []uint64) *truth.Trace {
	first, only := *t.Threads[0], *t
	first.Insns = insns
	only.Threads = []*truth.Thread{&first}
	return &only
}

// ownCode takes out of a coverage what is not the program's own code: _start where it is left out,
// and in a static image what saves and restores stack pointers and return addresses or ends in a
// system call, which only the C library's assembly does. A stripped program has no names for them;
// reasons identify them as well. That a program's own routines are not among them, dynamic images
// show.
func ownCode(c truth.Coverage, static bool) truth.Coverage {
	reasons := []string{"outermost frame"}
	if static {
		reasons = append(reasons, "stores its own return address",
			"writes rsp from a register or memory", "unresolved indirect jump",
			"runs into unknown code")
	}
	c.Missed = slices.DeleteFunc(c.Missed, func(m truth.Missed) bool {
		library := slices.ContainsFunc(reasons,
			func(reason string) bool { return strings.HasPrefix(m.Routine.Reason, reason) })
		if library {
			c.Known -= m.Insns
		}
		return library
	})
	return c
}

func steppedOutcome(t *truth.Trace) Outcome {
	o := Outcome{t.Stdout, t.Stderr, t.Exit}
	if t.Signal != 0 {
		o.Exit = 128 + t.Signal
	}
	return o
}

func sameOutcome(want, got Outcome) error {
	switch {
	case !bytes.Equal(want.Stdout, got.Stdout):
		return fmt.Errorf("%w: standard output %q, not %q", ErrDisturbed, got.Stdout, want.Stdout)
	case !bytes.Equal(want.Stderr, got.Stderr):
		return fmt.Errorf("%w: standard error %q, not %q", ErrDisturbed, got.Stderr, want.Stderr)
	case want.Exit != got.Exit:
		return fmt.Errorf("%w: exit status %d, not %d", ErrDisturbed, got.Exit, want.Exit)
	}
	return nil
}
