package zoo

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// listed is the name of the file in which a directory of programs lists them.
const listed = "cases.json"

// A listedCase is a case in that file.
type listedCase struct {
	Program string
	Flavour Flavour
}

// List writes into the builder's directory which cases are there. With that, Built takes them up on
// a machine that has no compiler.
func (b *Builder) List(cases []Case) error {
	list := make([]listedCase, len(cases))
	for i, c := range cases {
		list[i] = listedCase{c.Program.Name, c.Flavour}
	}
	text, err := json.Marshal(list)
	if err == nil {
		err = os.WriteFile(filepath.Join(b.dir, listed), text, 0o644)
	}
	if err != nil {
		return fmt.Errorf("list programs of the zoo: %w", err)
	}
	return nil
}

// Built returns a builder that compiles nothing, for its programs are in dir already, and the cases
// that are listed there.
func Built(dir string) (*Builder, []Case, error) {
	text, err := os.ReadFile(filepath.Join(dir, listed))
	var list []listedCase
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("look up programs of the zoo: %w", err)
	}
	cases := make([]Case, len(list))
	for i, c := range list {
		cases[i] = Case{Named(c.Program), c.Flavour}
	}
	return &Builder{dir: dir, built: true, results: map[string]func() (string, error){}}, cases, nil
}

// find returns the path of a program that was compiled before.
func (b *Builder) find(name string) (string, error) {
	path := filepath.Join(b.dir, name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("find %s, which was to be compiled before: %w", name, err)
	}
	return path, nil
}
