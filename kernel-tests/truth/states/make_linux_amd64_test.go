package states_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"wpptrace/kernel-tests/truth"
	"wpptrace/kernel-tests/truth/states"
	"wpptrace/kernel-tests/zoo"
)

var remake = flag.Bool("make", false, "record the samples anew, into testdata")

func TestMake(t *testing.T) {
	if !*remake {
		t.Skip("-make is not given")
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
		trace, err := truth.Run(t.Context(), truth.Options{Path: path, Env: zoo.Env(),
			FixedAddresses: true, Values: true})
		if err != nil {
			t.Fatal(err)
		}
		elf, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.Create(filepath.Join("testdata", name+".zst"))
		if err != nil {
			t.Fatal(err)
		}
		s := &states.Sample{Name: name, Executable: elf, Trace: trace}
		if err := s.Write(f); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
