package zoo_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"wpptrace/kernel-tests/zoo"
)

func ExampleBuilder_Build() {
	dir, err := os.MkdirTemp("", "zoo")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	b, err := zoo.NewBuilder(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range zoo.Programs() {
		if p.Name != "empty" {
			continue
		}
		path, err := b.Build(context.Background(), p,
			zoo.Flavour{Compiler: "gcc", Opt: "-O2", PIE: true})
		fmt.Println(filepath.Base(path), err)
	}
	// Output: empty-gcc-O2-pie <nil>
}

func ExampleCases() {
	c := zoo.Cases()[0]
	fmt.Println(c.Program.Name, c.Flavour)
	// Output: abort_caught gcc-O0-pie
}
