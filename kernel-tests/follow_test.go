package kerneltests

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"wpptrace/kernel-tests/exact"
	"wpptrace/kernel-tests/truth"
	"wpptrace/kernel-tests/zoo"
)

// Each program that comes out of one is recorded as if it were alone: a process goes on exactly as
// its parent forks, and what it becomes by exec is exact from its first instruction on, be it by
// fork and exec, by vfork, by posix_spawn or by exec alone.
func TestFollowingIsExact(t *testing.T) {
	builder, err := newBuilder()
	if err != nil {
		t.Fatal(err)
	}
	flavours := []zoo.Flavour{{Compiler: "gcc", Opt: "-O2", PIE: true},
		{Compiler: "gcc", Opt: "-O0"}}
	for i, c := range []struct {
		program string
		became  [][]string // with which arguments it executes itself
		others  []string   // what else is executed
		born    int        // forks
	}{
		{"exec", [][]string{{"1"}, {"0"}}, nil, 0},
		{"fork", nil, []string{"/bin/true"}, 5},
		{"vfork", nil, []string{"/bin/true", "/bin/false"}, 0},
	} {
		for j, f := range flavours {
			if !matrix() && (i+j)%2 > 0 { // one of the two has to do
				continue
			}
			t.Run(c.program+"/"+f.String(), func(t *testing.T) {
				t.Parallel()
				path, err := builder.Build(t.Context(), zoo.Named(c.program), f)
				if err != nil {
					t.Fatal(err)
				}
				want := []exact.Target{{Path: path, Env: zoo.Env(), Dir: t.TempDir()}}
				for _, args := range c.became {
					want = append(want,
						exact.Target{Path: path, Args: args, Env: zoo.Env(), Dir: want[0].Dir})
				}
				for _, other := range c.others {
					want = append(want, exact.Target{Path: other, Env: zoo.Env(), Dir: want[0].Dir})
				}
				followed(t, want, len(c.became) > 0, c.born)
			})
		}
	}
}

// followed fails the test unless the first target comes out exact, and all others, which follow
// from it, and so many forks.
func followed(t *testing.T, targets []exact.Target, execs bool, born int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience())
	defer cancel()
	bare, err := targets[0].Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	records, outcome, err := tracer.Follow(ctx, targets[0])
	if err != nil {
		t.Fatal(err)
	}
	if string(outcome.Stdout) != string(bare.Stdout) ||
		string(outcome.Stderr) != string(bare.Stderr) || outcome.Exit != bare.Exit {
		t.Errorf("followed it ended with %+v, alone with %+v", outcome, bare)
	}
	if len(records) != len(targets)+born {
		t.Errorf("%d records, want %d", len(records), len(targets)+born)
	}
	for i, target := range targets {
		argv := append([]string{target.Path}, target.Args...)
		at := slices.IndexFunc(records, func(r *exact.Record) bool { return isRunOf(r, argv) })
		if at < 0 {
			t.Errorf("no record of %q", argv)
			continue
		}
		last := i == len(targets)-1
		compareAlone(t, ctx, records[at], target, execs && !last)
		records = slices.Delete(records, at, at+1)
	}
	for _, r := range records {
		if r.Stat.Lost != 0 || r.Stat.Anomalies != 0 || r.Stat.Instructions == 0 {
			t.Errorf("of process %d: %d instructions, %d lost, %d anomalies", r.Stat.PID,
				r.Stat.Instructions, r.Stat.Lost, r.Stat.Anomalies)
		}
	}
}

// isRunOf compares a command line but for the directory of the program.
func isRunOf(r *exact.Record, argv []string) bool {
	got := slices.Clone(r.Stat.Command)
	if len(got) == 0 {
		return false
	}
	got[0], argv = filepath.Base(got[0]), slices.Concat([]string{filepath.Base(argv[0])}, argv[1:])
	return slices.Equal(got, argv)
}

// compareAlone compares a record with the truth of a target that is run by itself.
func compareAlone(t *testing.T, ctx context.Context, r *exact.Record, target exact.Target,
	execs bool) {
	t.Helper()
	want, err := truth.Run(ctx,
		truth.Options{Path: target.Path, Args: target.Args, Env: target.Env, Dir: target.Dir,
			Limit: most})
	if err != nil {
		t.Fatal(err)
	}
	if execs {
		want = exact.UntilExec(want)
	}
	if err := r.Against(want, exact.Expect{Execs: execs}); err != nil {
		t.Errorf("%s %q: %v", target.Path, target.Args, err)
	}
	if share := truth.Cover(want, r.Routines).Share(); share < 0.5 {
		t.Errorf("%s %q: %.0f %% of it is traced", target.Path, target.Args, 100*share)
	}
}

// forker works, forks, and works more on both sides; where it is given an argument it does not
// fork, and goes on as the child.
const forker = `
#include <sys/wait.h>
#include <unistd.h>
static volatile int sink;
__attribute__((noinline)) static int work(int n) { int r = 1;
	for (int i = 0; i < n; i++) r = r % 3 ? r * 2 + i : r / 3 + n; return r; }
__attribute__((noinline)) static int inner(int alone) { sink = work(11);
	return alone ? 0 : fork(); }
__attribute__((noinline)) static int outer(int alone) { sink = work(7);
	int child = inner(alone); sink = work(child ? 5 : 23); return child; }
int main(int c, char **v) {
	for (int i = 0; i < 3; i++) sink = work(i);
	int child = outer(c > 1);
	if (child) { int status; waitpid(child, &status, 0); sink = work(3);
		return WEXITSTATUS(status); }
	for (int i = 10; i < 20; i++) sink = work(i);
	_exit(sink & 15);
}`

// A process that is forked is recorded from what it does first to its end: in the activations that
// it was forked in, and in those that these return to.
func TestForksAreExact(t *testing.T) {
	path := filepath.Join(t.TempDir(), "forker")
	if err := os.WriteFile(path+".c", []byte(forker), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, opt := range []string{"-O2", "-O0"} {
		if out, err := exec.Command("gcc", opt, "-o", path,
			path+".c").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		records, _, err := tracer.Follow(t.Context(), exact.Target{Path: path, Env: zoo.Env()})
		if err != nil {
			t.Fatal(err)
		}
		if len(records) != 2 {
			t.Fatalf("%s: %d records, want 2", opt, len(records))
		}
		alone, err := truth.Run(t.Context(),
			truth.Options{Path: path, Args: []string{"alone"}, Env: zoo.Env(), Limit: most})
		if err != nil {
			t.Fatal(err)
		}
		child := records[1]
		if err := truth.Compare(child.Streams, alone, child.Routines,
			truth.Contiguous); err != nil {
			t.Errorf("%s: %v", opt, err)
		}
		// What comes before is less than half of all.
		if got, least := child.Stat.Instructions, uint64(truth.Cover(alone,
			child.Routines).Traced)/2; got < least || child.Stat.Lost != 0 ||
			child.Stat.Anomalies != 0 {
			t.Errorf("%s: %d instructions, want %d or more; %d lost, %d anomalies", opt, got, least,
				child.Stat.Lost, child.Stat.Anomalies)
		}
		compareAlone(t, t.Context(), records[0], exact.Target{Path: path, Env: zoo.Env()}, false)
	}
}
