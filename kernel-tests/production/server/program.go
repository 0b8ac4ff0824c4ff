package server

import (
	"bufio"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed src
var sources embed.FS

// A program is one that does a piece of work for each line that it reads, and answers with a line.
type program struct {
	name  string
	needs []string
	src   string // its file in src
	// build makes what runs of the file, and returns the command; nil: run is one
	build func(ctx context.Context, src string) (command []string, err error)
	run   string // an interpreter
}

var (
	python    = program{name: "python", needs: []string{"python3:python3"}, src: "busy.py", run: "python3"}
	libpython = program{name: "libpython", needs: []string{"gcc:gcc", "python3:python3"},
		src: "busy.py", build: buildLibpython}
	perl = program{name: "perl", needs: []string{"perl:perl"}, src: "busy.pl", run: "perl"}
	node = program{name: "node", needs: []string{"node:nodejs"}, src: "busy.js", run: "node"}
	jvm  = program{name: "jvm", needs: []string{"java:default-jre-headless",
		"javac:default-jdk-headless"}, src: "Busy.java", build: buildJava}
	cxx = program{name: "cxx", needs: []string{"g++:g++"}, src: "busy.cpp",
		build: compiler("g++", "-O2", "-g", "-std=c++17")}
	rust = program{name: "rust", needs: []string{"rustc:rustc"}, src: "busy.rs",
		build: compiler("rustc", "-O", "-g")}
)

func (p program) Name() string    { return p.name }
func (p program) Needs() []string { return p.needs }

func (p program) Start(ctx context.Context, dir string) (*Running, error) {
	text, err := sources.ReadFile("src/" + p.src)
	if err != nil {
		return nil, err
	}
	src, err := write(dir, p.src, text)
	if err != nil {
		return nil, err
	}
	command := []string{p.run, src}
	if p.build != nil {
		if command, err = p.build(ctx, src); err != nil {
			return nil, fmt.Errorf("build %s: %w", p.name, err)
		}
	}
	return startProgram(ctx, command, dir)
}

// startProgram starts a command that answers lines.
func startProgram(ctx context.Context, command []string, dir string) (*Running, error) {
	path, err := find(command[0])
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, command[1:]...)
	stdin, in, err1 := os.Pipe()
	out, stdout, err2 := os.Pipe()
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	cmd.Stdin, cmd.Stdout = stdin, stdout
	c := &pipe{in: in, out: out, lines: bufio.NewReader(out)}
	p, err := start(cmd, dir, nil)
	err = errors.Join(err, stdin.Close(), stdout.Close())
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	// until it is warm: a JIT has compiled what is hot
	const warm = 200
	for range warm {
		if err := c.Ask(); err != nil {
			return nil, errors.Join(fmt.Errorf("ask %s: %w", command[0], err), c.Close(), p.stop())
		}
	}
	return running(ctx, p, 1, func() (*pipe, error) { return c, nil })
}

// A pipe asks by way of stdin and stdout.
type pipe struct {
	in, out *os.File
	lines   *bufio.Reader
	turn    int
}

func (p *pipe) Ask() error {
	p.turn++
	if _, err := fmt.Fprintf(p.in, "%d\n", p.turn); err != nil {
		return err
	}
	_, err := p.lines.ReadSlice('\n')
	if errors.Is(err, io.EOF) {
		return errors.New("the program has ended")
	}
	return err
}

func (p *pipe) Close() error { return errors.Join(p.in.Close(), p.out.Close()) }

// compiler compiles a source file.
func compiler(command ...string) func(context.Context, string) ([]string, error) {
	return func(ctx context.Context, src string) ([]string, error) {
		out := strings.TrimSuffix(src, filepath.Ext(src))
		args := append(command[1:len(command):len(command)], "-o", out, src)
		return []string{out}, as(ctx, nil, filepath.Dir(src), command[0], args...)
	}
}

func buildJava(ctx context.Context, src string) ([]string, error) {
	dir := filepath.Dir(src)
	// one core works, the others compile
	return []string{"java", "-Xmx256m", "-XX:+UseSerialGC", "-cp", dir, "Busy"},
		as(ctx, nil, dir, "javac", "-d", dir, src)
}

// buildLibpython makes an interpreter that consists of the shared library, which Debian's own has
// been linked with statically.
func buildLibpython(ctx context.Context, src string) ([]string, error) {
	found, _ := filepath.Glob("/usr/lib/*/libpython3.*.so.1.0")
	if len(found) == 0 {
		return nil, fmt.Errorf("%w: apt-get install libpython3-dev", ErrMissing)
	}
	dir := filepath.Dir(src)
	main, err := write(dir, "main.c", []byte("int Py_BytesMain(int, char **);\n"+
		"int main(int argc, char **argv) { return Py_BytesMain(argc, argv); }\n"))
	if err != nil {
		return nil, err
	}
	out := filepath.Join(dir, "python")
	return []string{out, src}, as(ctx, nil, dir, "gcc", "-o", out, main, found[len(found)-1])
}
