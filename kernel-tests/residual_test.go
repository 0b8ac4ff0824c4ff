package kerneltests

import (
	"path/filepath"
	"strconv"
	"testing"

	"wpptrace/compress/wpp/covered"
	"wpptrace/internal/coverage"
	recording "wpptrace/internal/record"
	"wpptrace/internal/testenv"
	"wpptrace/kernel-tests/truth"
	"wpptrace/kernel-tests/zoo"
	"wpptrace/loader/cfg/recovery"
	"wpptrace/loader/image"
	"wpptrace/loader/target"
	"wpptrace/loader/x86"
)

// The edges that an input adds to those of another one, as single-stepping shows it, are reported,
// and no others: each by itself, or by the new block to which it alone leads. So it is with a
// recording as the baseline, and, of edges that it knows, with a coverage.
func TestNewEdges(t *testing.T) {
	numbers := zoo.Reals()[1].Stdin
	for _, c := range []struct {
		program            string
		args, more         []string
		baseline, addition string
	}{
		{"gzip", []string{"-1", "-n", "-c"}, []string{"-9", "-n", "-c"}, numbers[:300],
			numbers},
		{"sed", []string{"-n", "s/1/2/p"}, []string{"s/\\([0-9]\\)5/<\\1>/g"}, numbers[:200],
			numbers[:300]},
	} {
		t.Run(c.program, func(t *testing.T) {
			r := zoo.Real{Command: c.program, Package: c.program}
			path, err := r.Path()
			if err != nil {
				testenv.Missing(t, err)
			}
			newEdgesAgree(t, path, input{c.args, c.baseline}, input{c.more, c.addition})
		})
	}
}

// An input is what a program is given.
type input struct {
	args  []string
	stdin string
}

// start starts a program, which stands before its first instruction.
func (in input) start(t *testing.T, path string) *target.Child {
	t.Helper()
	child, err := zoo.Start(append([]string{path}, in.args...), in.stdin)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(child.Process.Close)
	return child
}

// record records all that a program does, and returns the file.
func (in input) record(t *testing.T, path string) string {
	t.Helper()
	file, child := filepath.Join(t.TempDir(), "recorded.wpp"), in.start(t, path)
	if _, err := recording.Run(t.Context(), recording.Options{Child: child, Output: file,
		StopWhenFull: true}, nil); err != nil {
		t.Fatal(err)
	}
	<-child.Done()
	return file
}

func newEdgesAgree(t *testing.T, path string, before, now input) {
	t.Helper()
	stepped := func(in input) run {
		got, err := truth.Run(t.Context(), truth.Options{Path: path, Args: in.args,
			Stdin: []byte(in.stdin), Limit: most})
		if err != nil {
			t.Fatal(err)
		}
		return runsOf(got)
	}
	ran, runs := stepped(before), stepped(now)
	seen := filepath.Join(t.TempDir(), "c.wpp")
	child := before.start(t, path)
	c, err := coverage.Run(t.Context(), coverage.Options{Child: child})
	skipWithoutWindows(t, err)
	if err != nil {
		t.Fatal(err)
	}
	<-child.Done()
	if err := coverage.WriteSnapshot(seen, c, coverage.Origin{}); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{before.record(t, path), seen} {
		b, err := coverage.ReadBaseline([]string{file})
		if err != nil {
			t.Fatal(err)
		}
		child := now.start(t, path)
		blocks, edges := map[string]bool{}, map[[2]string]bool{}
		result, err := coverage.Residual(t.Context(), coverage.ResidualOptions{
			Options: coverage.Options{Child: child,
				Remark: func(line string) { t.Log(line) }},
			Baseline: b, Edges: true, Most: 1e6,
			Found: func(e coverage.Event) {
				if n := e.(*coverage.New); n.To != nil {
					edges[[2]string{n.Address, n.To.Address}] = true
				} else {
					blocks[n.Address] = true
				}
			}})
		if err != nil {
			t.Fatal(err)
		}
		<-child.Done()
		t.Log(result.Text())
		var unknown *covered.Coverage
		if file == seen {
			unknown = c
		}
		compareEdges(t, path, ran, runs, blocks, edges, unknown)
	}
}

// compareEdges compares each outcome of a conditional jump with what was reported. Of those that a
// coverage does not know nothing is said.
func compareEdges(t *testing.T, path string, ran, runs run, blocks map[string]bool,
	edges map[[2]string]bool, before *covered.Coverage) {
	t.Helper()
	im, err := image.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	program, err := recovery.Recover(im)
	if err != nil {
		t.Fatal(err)
	}
	untold := map[uint64]bool{}
	if before != nil {
		for _, b := range before.Images[0].Blocks {
			if b.Jump != nil && (b.Jump.Outcomes[0] == covered.Unknown ||
				b.Jump.Outcomes[1] == covered.Unknown) {
				untold[b.Addr] = true
			}
		}
	}
	hex := func(addr uint64) string { return strconv.FormatUint(addr, 16) }
	found, all := 0, 0
	for _, r := range program.Routines {
		for i := range r.Blocks {
			b := &r.Blocks[i]
			last := &b.Insns[len(b.Insns)-1]
			if last.Kind != x86.Jcc || last.Class(r.Code(last)) != x86.Emulated || untold[b.Lo] {
				continue
			}
			for _, to := range []uint64{last.End(), last.Target()} {
				step := [2]uint64{last.Addr, to}
				if all++; last.End() == last.Target() {
					continue
				}
				isNew := runs.steps[step] && !ran.steps[step]
				is := edges[[2]string{hex(last.Addr), hex(to)}]
				if is {
					found++
				}
				switch {
				case is && !isNew:
					t.Errorf("%s: the edge from %x to %x is no new one", r.Name, last.Addr, to)
				case !is && isNew && !blocks[hex(to)]:
					t.Errorf("%s: the edge from %x to %x is new", r.Name, last.Addr, to)
				}
			}
		}
	}
	if found != len(edges) {
		t.Errorf("%d of %d edges are none of the program's", len(edges)-found, len(edges))
	}
	t.Logf("%d new edges and %d blocks, of %d edges", len(edges), len(blocks), all)
}

// nothingIsNew checks that with a recording of a run that is alike neither a block nor an edge is
// new: with threads, signals, exceptions, longjmp and faults.
func nothingIsNew(t *testing.T, path string, in input) {
	t.Helper()
	baseline := in.record(t, path)
	b, err := coverage.ReadBaseline([]string{baseline})
	if err != nil {
		t.Fatal(err)
	}
	child := in.start(t, path)
	result, err := coverage.Residual(t.Context(), coverage.ResidualOptions{
		Options: coverage.Options{Child: child}, Baseline: b, Edges: true, Most: 1e6,
		Found: func(e coverage.Event) { t.Errorf("new to %s: %s", baseline, e.Text()) }})
	if err != nil {
		t.Fatal(err)
	}
	<-child.Done()
	if result.New > 0 || result.NewEdges > 0 {
		t.Error(result.Text())
	}
}
