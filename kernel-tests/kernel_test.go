package kerneltests

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf/features"

	"wpptrace/kernel-tests/zoo"
	"wpptrace/loader/uprobe"
)

// What the kernel should have by its version it has: where a test lacks something, it goes another
// way or is skipped.
func TestCheck(t *testing.T) {
	version, err := features.LinuxVersionCode()
	if err != nil {
		t.Fatal(err)
	}
	const major, minor = 1 << 16, 1 << 8
	want := "a perf event each"
	switch {
	case version >= 6*major+10*minor:
		want = "one link for all, in one process alone"
	case version >= 6*major+6*minor:
		want = "one link for all, in all processes"
	}
	out, err := exec.CommandContext(t.Context(), tracer.Path(), "check").Output()
	t.Logf("\n%s", out)
	if err != nil || !strings.Contains(string(out), want) || strings.Count(string(out),
		"\n") != strings.Count("\n"+string(out), "\nok ") {
		t.Errorf("check: %v; all is to be ok, and probes to be %s", err, want)
	}
}

// Where probes are taken out one by one, a program that needs many is refused, and some of its
// routines are not.
func TestManyProbes(t *testing.T) {
	if uprobe.Detect() != uprobe.Events {
		t.Skip("this kernel takes out as many as a plan may have in a moment")
	}
	real := zoo.Reals()[0]
	path, err := real.Path()
	if err != nil {
		t.Fatal(err)
	}
	record := func(flags ...string) (string, error) {
		args := append(append([]string{"-o", filepath.Join(t.TempDir(), "x.wpp")}, flags...), "--",
			path)
		cmd := exec.CommandContext(t.Context(), tracer.Path(), append(args, real.Args...)...)
		cmd.Env = append(os.Environ(), zoo.Env()...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := record(); err == nil ||
		!strings.Contains(out, ": select routines of it with -F") {
		t.Errorf("%s whole: %v\n%s", real.Name, err, out)
	}
	if out, err := record("-F", "^xmalloc$", "--overhead", "5"); err == nil ||
		!strings.Contains(out, ": leave --overhead out") {
		t.Errorf("in windows: %v\n%s", err, out)
	}
	const some = "^xmalloc$"
	if out, err := record("-F", some); err != nil || !strings.Contains(out, "lost: 0 events\n") {
		t.Errorf("%s of %s: %v\n%s", some, real.Name, err, out)
	}
}
