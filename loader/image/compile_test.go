package image

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// compile compiles one source file, in C or C++ by its name, and returns the path of the program.
func compile(t testing.TB, name, source string, flags ...string) string {
	t.Helper()
	compiler := "gcc"
	if strings.HasSuffix(name, ".cc") {
		compiler = "g++"
	}
	return compileWith(t, compiler, name, source, flags...)
}

func compileWith(t testing.TB, compiler, name, source string, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "program")
	run(t, "", compiler, append([]string{"-o", program, path}, flags...)...)
	return program
}

// run runs a program of the compiler's tool set and returns what it prints.
func run(t testing.TB, input, program string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Stdin = strings.NewReader(input)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", program, args, err, stderr.String())
	}
	return string(out)
}

func mustOpen(t testing.TB, path string) *Image {
	t.Helper()
	im, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { im.Close() })
	return im
}

// symbolNamed returns a function of an image.
func symbolNamed(t testing.TB, im *Image, name string) Symbol {
	t.Helper()
	for _, s := range im.Symbols() {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("%s has no symbol %s", im.Name, name)
	return Symbol{}
}

// rangeAt returns the range that an address lies in, or nil.
func rangeAt(im *Image, addr uint64) *Range {
	for i := range im.Ranges {
		if r := &im.Ranges[i]; r.Lo <= addr && addr < r.Hi {
			return r
		}
	}
	return nil
}

const loops = `#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int twice(int x) { return 2 * x; }
static int thrice(int x) { return 3 * x; }
static int nothing(int x) { return 0; }
int (*const table[])(int) = { twice, thrice, nothing };

static int chosen(int x) { return x + 1; }
static int (*choose(void))(int) { return chosen; }
int pick(int x) __attribute__((ifunc("choose")));

__attribute__((noinline)) int sum(int n)
{
	int s = 0;
	for (int i = 0; i < n; i++)
		if (i % 3)
			s += table[i % 3](i);
		else
			s -= i;
	return s;
}

int main(int argc, char **argv)
{
	char *copy = strdup(argv[0]);
	printf("%d %d %zu\n", sum(argc * 100), pick(argc), strlen(copy));
	free(copy);
	return 0;
}
`

const exceptions = `#include <cstdio>
#include <stdexcept>
#include <string>

struct Guard { const char *name; ~Guard() { std::puts(name); } };

__attribute__((noinline)) void thrower(int x)
{
	Guard g{"thrower"};
	if (x > 1)
		throw std::runtime_error("much");
}

__attribute__((noinline)) int catcher(int x)
{
	Guard g{"catcher"};
	try {
		thrower(x);
	} catch (const std::exception &e) {
		std::puts(e.what());
		return 1;
	}
	return 0;
}

int main(int argc, char **) { return catcher(argc) + catcher(argc + 1); }
`
