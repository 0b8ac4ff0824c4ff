package zoo

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// outcome runs a program of the zoo and gives its standard output, its standard error and its exit status.
func outcome(t *testing.T, path string, args []string) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = Env()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatalf("run %s: %v", path, err)
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

// A build of every program in every flavour of the pairwise subset takes minutes: -short takes three a program.
func cases() []Case {
	if testing.Short() {
		return Cases(3)
	}
	return Cases(len(Pairwise()))
}

func TestEveryFlavourBehavesTheSame(t *testing.T) {
	b, err := NewBuilder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var reference sync.Map // program name to its output
	for _, p := range Programs() {
		path, err := b.Build(context.Background(), p, Flavour{Compiler: "gcc", Opt: "-O0", PIE: true})
		if err != nil {
			t.Fatal(err)
		}
		out, status := outcome(t, path, p.Args)
		if status != p.Exit {
			t.Errorf("%s: exit status %d, documented as %d", p.Name, status, p.Exit)
		}
		if p.Name != "empty" && !isChecksum(out) {
			t.Errorf("%s: output %q is not a checksum", p.Name, out)
		}
		reference.Store(p.Name, out)
	}
	for _, c := range cases() {
		t.Run(c.Program.Name+"/"+c.Flavour.String(), func(t *testing.T) {
			t.Parallel()
			path, err := b.Build(context.Background(), c.Program, c.Flavour)
			if errors.Is(err, ErrNotBuildable) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			out, status := outcome(t, path, c.Program.Args)
			want, _ := reference.Load(c.Program.Name)
			if out != want || status != c.Program.Exit {
				t.Errorf("output %q, status %d; want %q, %d", out, status, want, c.Program.Exit)
			}
		})
	}
}

func isChecksum(s string) bool {
	return len(s) == 9 && s[8] == '\n' && strings.Trim(s[:8], "0123456789abcdef") == ""
}
