package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"runtime/debug"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/pflag"
	"kernel.org/pub/linux/libs/security/libcap/cap"

	"wpptrace/internal/top"
	"wpptrace/loader/guard"
)

// TestMain makes the test binary stand in for wpptrace, in scripts and for tests that start it.
func TestMain(m *testing.M) {
	guard.Main() // for those that record in their own process
	top.Main()
	testscript.Main(privileged{m}, map[string]func(){
		"wpptrace":          main,
		"wpptrace-nobpf":    mainWithoutBPF,
		"wpptrace-measured": mainMeasured,
	})
}

// Tests that are privileged stay so when they record in their own process. Those that start
// wpptrace see it give up what it does not need.
type privileged struct{ *testing.M }

func (p privileged) Run() int {
	confine = func([]string, ...cap.Value) error { return nil }
	return p.M.Run()
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"status":   checkStatus,
			"snapshot": makeSnapshot,
		},
		Setup: func(e *testscript.Env) error {
			e.Setenv("PID", strconv.Itoa(os.Getpid()))
			return nil
		},
	})
}

// checkStatus is the script command "status N PROGRAM ARG...": the program must exit with status N.
func checkStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N PROGRAM [ARG...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	got := 0
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// wpptrace runs the program within the test and returns what it wrote.
func wpptrace(args ...string) (stdout, stderr string, status int) {
	var out, errs bytes.Buffer
	status = run(args, &out, &errs)
	return out.String(), errs.String(), status
}

// A command that the arguments name is the one that is made, as all are.
func TestCommands(t *testing.T) {
	for name, command := range commands {
		if got := command().Name(); got != name {
			t.Errorf("%s makes the command %s", name, got)
		}
		if c, _, err := rootCommand(name).Find([]string{name}); err != nil || c.Name() != name {
			t.Errorf("%s finds the command %s: %v", name, c.Name(), err)
		}
	}
	if n := len(rootCommand().Commands()) - len(taggedCommands); n != len(commands) {
		t.Errorf("%d commands without arguments, want %d", n, len(commands))
	}
}

// Help is given for every flag of every command, and examples come first.
func TestHelp(t *testing.T) {
	root := rootCommand()
	for _, c := range append(root.Commands(), root) {
		if c.Hidden {
			continue
		}
		if c.Example == "" || c.Short == "" {
			t.Errorf("%s: no example, or no description", c.Name())
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s --%s: no help", c.Name(), f.Name)
			}
		})
		args := []string{"--help"}
		if c != root {
			args = []string{c.Name(), "--help"}
		}
		out, _, status := wpptrace(args...)
		if status != 0 {
			t.Errorf("%s --help: status %d", c.Name(), status)
		}
		for i, line := range bytes.Split([]byte(out), []byte("\n")) {
			if len(line) > 100 {
				t.Errorf("%s --help: line %d has %d columns: %s", c.Name(), i+1, len(line), line)
			}
		}
	}
}

func TestVersion(t *testing.T) {
	const revision = "279a34a1d65af30c99d8e6a1694aafc3f6a82b2f"
	for _, c := range []struct{ revision, modified, want string }{
		{"", "", "1.2.3"},
		{revision, "false", "1.2.3 (279a34a1d65a)"},
		{revision, "true", "1.2.3 (279a34a1d65a, changed)"},
	} {
		info := &debug.BuildInfo{}
		if c.revision != "" {
			info.Settings = []debug.BuildSetting{{Key: "vcs.revision", Value: c.revision},
				{Key: "vcs.modified", Value: c.modified}}
		}
		if got := versionOf("1.2.3", info); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
	if out, _,
		_ :=
		wpptrace("--version"); !regexp.MustCompile(`^wpptrace \d+\.\d+\.\d+( \([0-9a-f]{12}(,
			changed)?\))?\n$`).MatchString(out) {
		t.Errorf("--version: %q", out)
	}
}
