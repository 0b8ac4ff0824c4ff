//go:build linux && cgo

package states_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"wpptrace/bpf/wire"
	"wpptrace/kernel-tests/truth"
	"wpptrace/kernel-tests/truth/states"
	"wpptrace/kernel-tests/zoo"
	"wpptrace/loader/attach"
	"wpptrace/loader/guard"
	"wpptrace/loader/loads"
	"wpptrace/loader/target"
)

// TestMain lets the test binary, started again, be the guard of a session.
func TestMain(m *testing.M) {
	guard.Main()
	os.Exit(m.Run())
}

// TestKernelSends: the states that the kernel sends of a run are those that follow from its steps.
// It runs in a process of its own, whose children have fixed addresses.
func TestKernelSends(t *testing.T) {
	const again = "WPPTRACE_FIXED_ADDRESSES"
	if os.Getenv(again) == "" {
		c := exec.Command("setarch", "--addr-no-randomize", os.Args[0], "-test.v",
			"-test.run=^TestKernelSends$")
		c.Env = append(zoo.Env(), again+"=1")
		out, err := c.CombinedOutput()
		t.Logf("%s", out)
		if err != nil || !bytes.Contains(out, []byte("--- PASS: TestKernelSends")) {
			t.Error(err)
		}
		return
	}
	b, err := zoo.NewBuilder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range states.Names() {
		path, err := b.Build(t.Context(), zoo.Named(name),
			zoo.Flavour{Compiler: "gcc", Opt: "-O2", PIE: true})
		if err != nil {
			t.Fatal(err)
		}
		compareStates(t, name, path)
	}
}

func compareStates(t *testing.T, name, path string) {
	trace, err := truth.Run(t.Context(), truth.Options{Path: path, FixedAddresses: true,
		Values: true})
	if err != nil {
		t.Fatal(err)
	}
	elf, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := &states.Sample{Name: name, Executable: elf, Trace: trace}
	p := planOf(t, s)
	want, err := s.Records(p)
	if err != nil {
		t.Fatal(err)
	}
	got, err := run(t, path, p)
	if err != nil {
		t.Fatal(err)
	}
	var all []wire.State
	for _, record := range want {
		b, err := wire.ParseBatch(record)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, statesOf(t, b)...)
	}
	other := 0
	if len(got) != len(all) {
		t.Errorf("%s: %d states, want %d", name, len(got), len(all))
	}
	for i, s := range got {
		if i >= len(all) {
			t.Fatalf("%s: more states than %d", name, len(all))
		}
		if diff := differ(&s, &all[i]); diff != "" {
			if other++; other < 20 {
				t.Errorf("%s: state %d: %s: got %+v, want %+v", name, i, diff, s, all[i])
			}
		}
	}
	t.Logf("%s: %d states, %d differ", name, len(all), other)
}

// differ says in what states do, except for memory that no step has accessed: 0 by the truth.
func differ(got, want *wire.State) string {
	if fmt.Sprint(got.Site, got.Outcome, got.Ordinal, got.Flags, got.Hash) !=
		fmt.Sprint(want.Site, want.Outcome, want.Ordinal, want.Flags, want.Hash) {
		return "registers"
	}
	if len(got.Words) != len(want.Words) {
		return "words"
	}
	for i := range got.Words {
		for b := 0; b < 64; b += 8 {
			g, w := byte(got.Words[i]>>b), byte(want.Words[i]>>b)
			if g != w && w != 0 {
				return "memory"
			}
		}
	}
	return ""
}

func statesOf(t *testing.T, b wire.Batch) (list []wire.State) {
	for s, err := range b.States() {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, s)
	}
	return list
}

// run runs a program, and returns its states.
func run(t *testing.T, path string, p *loads.Plan) (list []wire.State, err error) {
	c, err := target.Start([]string{path})
	if err != nil {
		return nil, err
	}
	defer c.Process.Close()
	exe, err := c.Process.Executable()
	if err != nil {
		c.Kill()
		return nil, err
	}
	defer exe.Close()
	s, err := attach.Load(c.Process, p.Base.Parts[0].Program.Image, p.Base,
		attach.Options{Ring: 1 << 24, Loads: p})
	if err == nil {
		defer s.Close()
		err = errors.Join(s.Attach(exe), s.Enable(true))
	}
	if err != nil {
		c.Kill()
		return nil, err
	}
	c.Release()
	<-c.Done()
	if err := s.Detach(); err != nil {
		return nil, err
	}
	for {
		b, err := s.Read(time.Now())
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		list = append(list, statesOf(t, b)...)
	}
}
