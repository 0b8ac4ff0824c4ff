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
	"strings"
	"sync"
)

//go:embed src
var sources embed.FS

// ErrNotBuildable is the error of a program that cannot be had in a flavour at all, as opposed to one that failed to build.
var ErrNotBuildable = errors.New("not buildable in this flavour")

// A Builder compiles programs into a directory, each program and flavour once. It may be used concurrently.
type Builder struct {
	dir     string
	mu      sync.Mutex
	results map[string]func() (string, error)
}

// NewBuilder writes the sources into dir, which must exist and is the caller's to remove, and builds there.
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

// Build compiles the program, unless it was compiled before, and returns the executable's path. Its error wraps
// ErrNotBuildable where the flavour makes no sense for the program.
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
	if f.Static && p.Has(NoStatic) || f.Compiler != "gcc" && p.Has(GNU) {
		return "", fmt.Errorf("build %s: %w", name, ErrNotBuildable)
	}
	compiler, err := compilerFor(p, f)
	if err != nil {
		return "", fmt.Errorf("build %s: %w", name, err)
	}
	path := filepath.Join(b.dir, name)
	args := append(f.flags(), "-o", path, p.File)
	if p.Cxx() {
		args = append(args, "-std=c++17") // some clang that is current takes C++14
	}
	cmd := exec.CommandContext(ctx, compiler, args...)
	cmd.Dir = filepath.Join(b.dir, "src")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s with %s %s: %w\n%s", name, compiler, strings.Join(args, " "), err, out)
	}
	return path, nil
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
