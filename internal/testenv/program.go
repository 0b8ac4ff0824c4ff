package testenv

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// CompileC compiles a program that is called prog, with gcc.
func CompileC(t testing.TB, code string, flags ...string) (path string) {
	t.Helper()
	dir := t.TempDir()
	source, program := filepath.Join(dir, "prog.c"), filepath.Join(dir, "prog")
	if err := os.WriteFile(source, []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc",
		append(flags, "-o", program, source)...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	return program
}

// branching is a small program with a bit of everything that is read of one.
const branching = `
static volatile int sum;
static inline int half(int n) { return n / 2; }
__attribute__((noinline)) static int choose(int n)
{
	switch (n) {
	case 0: return 3;
	case 1: sum++; return 7;
	case 2: return half(sum);
	case 3: sum -= 2; return choose(n - 1);
	case 4: return n * sum;
	case 5: sum = 9; return 1;
	}
	return -1;
}
void _start(void)
{
	for (int i = 0; i < 100; i++)
		if (i % 3)
			sum += choose(i % 8);
	for (;;)
		;
}`

// FuzzProgram hands over the file of a program of which bytes are changed: each five bytes of edits
// are an offset and a new value. The file is closed afterwards.
func FuzzProgram(f *testing.F, check func(t *testing.T, program *os.File)) {
	program, err := os.ReadFile(CompileC(f, branching, "-O2", "-g", "-nostdlib", "-static"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{})
	f.Add([]byte{0x40, 0x11, 0, 0, 0xe9, 0x80, 0x11, 0, 0, 0x0f})
	f.Fuzz(func(t *testing.T, edits []byte) {
		b := slices.Clone(program)
		for ; len(edits) >= 5; edits = edits[5:] {
			b[int(binary.LittleEndian.Uint32(edits))%len(b)] = edits[4]
		}
		file, err := os.CreateTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if _, err := file.Write(b); err != nil {
			t.Fatal(err)
		}
		check(t, file)
	})
}
