package zoo

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

//go:embed src
var sources embed.FS

// ErrNotBuildable is the error of a program that cannot be had in a flavour at all, as opposed to
// one that failed to build.
var ErrNotBuildable = errors.New("not buildable in this flavour")

// A Builder compiles programs into a directory, each program and flavour once. It may be used
// concurrently.
type Builder struct {
	dir     string
	built   bool // it compiles nothing
	mu      sync.Mutex
	results map[string]func() (string, error)
}

// NewBuilder writes the sources into dir, which must exist and is the caller's to remove, and
// builds there.
func NewBuilder(dir string) (*Builder, error) {
	src, err := fs.Sub(sources, "src")
	if err != nil {
		return nil, err
	}
	if err := os.CopyFS(filepath.Join(dir, "src"), src); err != nil {
		return nil, fmt.Errorf("write sources of the zoo: %w", err)
	}
	return &Builder{dir: dir, results: map[string]func() (string, error){}}, nil
}

// Build compiles the program, unless it was compiled before, and returns the executable's path. Its
// error wraps ErrNotBuildable where the flavour makes no sense for the program.
func (b *Builder) Build(ctx context.Context, p Program, f Flavour) (path string, err error) {
	name := p.Name + "-" + f.String()
	b.mu.Lock()
	build := b.results[name]
	if build == nil {
		build = sync.OnceValues(func() (string, error) { return b.compile(ctx, p, f, name) })
		b.results[name] = build
	}
	b.mu.Unlock()
	return build()
}

func (b *Builder) compile(ctx context.Context, p Program, f Flavour, name string) (string, error) {
	if b.built {
		return b.find(name)
	}
	if f.Static && p.Has(NoStatic) || f.Shared && p.Has(EarlyCode) ||
		f.Extra == "-fno-plt" && p.Has(Announced) || f.Compiler != "gcc" && p.Has(GNU) {
		return "", fmt.Errorf("build %s: %w", name, ErrNotBuildable)
	}
	compiler, err := compilerFor(p, f)
	if err != nil {
		return "", fmt.Errorf("build %s: %w", name, err)
	}
	path := filepath.Join(b.dir, name)
	if f.Shared {
		return path, b.compileShared(ctx, p, f, compiler, path)
	}
	args := append(f.flags(), "-o", path, p.File)
	if p.Cxx() {
		args = append(args, "-std=c++17") // some clang that is current takes C++14
	}
	return path, b.run(ctx, compiler, args...)
}

func (b *Builder) run(ctx context.Context, tool string, args ...string) error {
	cmd := exec.CommandContext(ctx, tool, args...)
	cmd.Dir = filepath.Join(b.dir, "src")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("run %s %s: %w\n%s", tool, strings.Join(args, " "), err, out)
	}
	return nil
}

// Library is the base name of the library that a program in a flavour that is Shared consists of.
func (f Flavour) Library(p Program) string { return "lib" + p.Name + "-" + f.String() + ".so" }

// BuildCrossing compiles an executable, a library that it is linked with, and one that it opens,
// which call each other. It returns the path of the executable and the base names of the libraries.
func (b *Builder) BuildCrossing(ctx context.Context,
	f Flavour) (path string, libraries []string, err error) {
	dir := filepath.Join(b.dir, "crossing-"+f.String())
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", nil, fmt.Errorf("build crossing: %w", err)
	}
	f.Shared = true
	compile := func(to string, args ...string) {
		if err == nil {
			err = b.run(ctx, "g++",
				slices.Concat(f.flags(), []string{"-o", filepath.Join(dir, to)}, args)...)
		}
	}
	const library, plugin = "libcrossing_lib.so", "libcrossing_plugin.so"
	compile(library, "-shared", "shared/crossing_lib.cc")
	compile(plugin, "-shared", "shared/crossing_plugin.cc")
	compile("crossing", "-rdynamic", "shared/crossing.cc", "-L", dir, "-l:"+library, "-ldl",
		"-Wl,-rpath,$ORIGIN")
	return filepath.Join(dir, "crossing"), []string{library, plugin}, err
}

// compileShared makes a library of the program, whose main is called zoo_main, and an executable
// that calls it.
func (b *Builder) compileShared(ctx context.Context, p Program, f Flavour, compiler,
	path string) error {
	object, library := path+".o", f.Library(p)
	flags := f.flags()
	if p.Cxx() {
		flags = append(flags, "-std=c++17")
	}
	for _, step := range [][]string{
		append([]string{compiler, "-c", "-o", object, p.File}, flags...),
		{"objcopy", "--redefine-sym", "main=zoo_main", object},
		append([]string{compiler, "-shared", "-o", filepath.Join(b.dir, library), object},
			flags...),
		append([]string{"gcc", "-o", path, "shared/main.c", "-L", b.dir, "-l:" + library,
			"-Wl,-rpath,$ORIGIN"}, f.Opt, "-pthread", "-fPIE", "-pie"),
	} {
		if err := b.run(ctx, step[0], step[1:]...); err != nil {
			return err
		}
	}
	return nil
}

func compilerFor(p Program, f Flavour) (string, error) {
	if f.Compiler == "clang" {
		suffix, err := clang()
		if p.Cxx() {
			return "clang++" + suffix, err
		}
		return "clang" + suffix, err
	}
	if p.Cxx() {
		return "g++", nil
	}
	return f.Compiler, nil
}
