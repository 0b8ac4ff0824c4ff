package kerneltests

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"wpptrace/compress/wpp/covered"
	"wpptrace/internal/coverage"
	"wpptrace/kernel-tests/exact"
	"wpptrace/kernel-tests/truth"
	"wpptrace/kernel-tests/zoo"
	"wpptrace/loader/cfg"
	"wpptrace/loader/cfg/recovery"
	"wpptrace/loader/image"
	"wpptrace/loader/uprobe"
	"wpptrace/loader/x86"
)

// What coverage says of each block and of each outcome of a conditional jump of the zoo's programs
// is what single-stepping shows, with threads, signals, exceptions, longjmp and faults; but for
// programs that a timer interrupts anywhere, and those whose threads are killed.
func TestCoverageOfTheZoo(t *testing.T) {
	const apart = zoo.Timer | zoo.Execs | zoo.KillsThreads
	cases := slices.DeleteFunc(zooCases(), func(c zoo.Case) bool {
		if c.Flavour.Static { // the C library looks at addresses and at the environment
			return true
		}
		return c.Program.Tags&apart != 0 || c.Program.Tags&(zoo.Long|zoo.Longest) != 0 && !matrix()
	})
	builder, cases := programs(t, cases)
	for i, c := range cases {
		t.Run(c.Program.Name+"/"+c.Flavour.String(), func(t *testing.T) {
			path := build(t, builder, c)
			target := targetOf(c, path, t.TempDir())
			if target.Libraries != nil {
				t.Skip("its code is a library, which is not mapped when it begins")
			}
			coverageAgrees(t, target)
			if i%4 == 0 || c.Program.Tags&zoo.Fault != 0 {
				nothingIsNew(t, path, input{target.Args, string(target.Stdin)})
			}
		})
	}
}

func coverageAgrees(t *testing.T, target exact.Target) {
	t.Helper()
	want, err := truth.Run(t.Context(), truth.Options{Path: target.Path, Args: target.Args,
		Env: target.Env, Dir: target.Dir, Stdin: target.Stdin, Limit: most,
		FixedAddresses: target.FixedAddresses})
	if errors.Is(err, truth.ErrLimit) {
		t.Skip(err)
	}
	if err == nil && built() == "" { // for TestZooIsExact
		err = writeTruth(target.Path, "whole", want)
	}
	if err != nil {
		t.Fatal(err)
	}
	child := input{target.Args, string(target.Stdin)}.start(t, target.Path)
	got, err := coverage.Run(t.Context(), coverage.Options{Child: child})
	skipWithoutWindows(t, err)
	if err != nil {
		t.Fatal(err)
	}
	<-child.Done()
	im, err := image.OpenFile(target.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	program, err := recovery.Recover(im)
	if err != nil {
		t.Fatal(err)
	}
	ran := runsOf(want)
	states := map[uint64]*covered.Block{}
	for i := range got.Images[0].Blocks {
		states[got.Images[0].Blocks[i].Addr] = &got.Images[0].Blocks[i]
	}
	known, all := 0, 0
	for _, r := range program.Routines {
		for i := range r.Blocks {
			b := &r.Blocks[i]
			if all++; states[b.Lo] == nil || states[b.Lo].Ran == covered.Unknown {
				continue
			}
			known++
			if err := ran.differs(r, b, states[b.Lo]); err != nil {
				t.Error(err)
			}
		}
	}
	if known < all/2 {
		t.Errorf("of %d blocks %d are known", all, known)
	}
}

// skipWithoutWindows skips a test where the kernel lacks what it takes to have probes go when they
// were hit: that is said then.
func skipWithoutWindows(t *testing.T, err error) {
	t.Helper()
	why := uprobe.Detect().SupportsWindows()
	if why == nil {
		return
	}
	if err == nil || !strings.Contains(err.Error(), why.Error()) {
		t.Fatalf("it is refused by %v, and not as %v", err, why)
	}
	t.Skip(why)
}

// A run is the instructions that a truth has, and which of them followed on each other.
type run struct {
	insns map[uint64]bool
	steps map[[2]uint64]bool
}

func runsOf(want *truth.Trace) run {
	r := run{map[uint64]bool{}, map[[2]uint64]bool{}}
	for _, thread := range want.Threads {
		for i, at := range thread.Insns {
			r.insns[at] = true
			if i > 0 {
				r.steps[[2]uint64{thread.Insns[i-1], at}] = true
			}
		}
	}
	return r
}

// differs says what of a block is not as single-stepping shows it. A block that a fault or a signal
// leaves may have run in part.
func (r run) differs(in *cfg.Routine, b *cfg.Block, got *covered.Block) error {
	last := &b.Insns[len(b.Insns)-1]
	began, ended := r.insns[b.Lo], r.insns[last.Addr]
	if is := got.Ran == covered.Run; is && !began || !is && ended {
		return fmt.Errorf("the block at %x in %s has run: %v, and when stepped: %v", b.Lo, in.Name,
			is, began)
	}
	if last.Kind != x86.Jcc || got.Jump == nil {
		return nil
	}
	for outcome, to := range []uint64{last.End(), last.Target()} {
		if slices.ContainsFunc(in.Blocks, func(b cfg.Block) bool {
			return b.Lo == to && b.Insns[0].Kind == x86.Trap
		}) {
			continue // an instruction that does not complete is not among those that were stepped
		}
		if state := got.Jump.Outcomes[outcome]; state != covered.Unknown &&
			last.End() != last.Target() &&
			(state == covered.Run) != r.steps[[2]uint64{last.Addr, to}] {
			return fmt.Errorf("the jump at %x in %s has led to %x: %v, and when stepped: %v",
				last.Addr, in.Name, to, state == covered.Run, state != covered.Run)
		}
	}
	return nil
}
