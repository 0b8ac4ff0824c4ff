package record

import (
	"encoding/binary"
	"os"
	"slices"
	"strings"
	"testing"

	"wpptrace/compress/wpp"
)

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

// FuzzProgram changes bytes of a program: each five bytes of edits are an offset and a new value.
// What a recording reads of it ends with a plan and source lines, or an
// error that names it.
func FuzzProgram(f *testing.F) {
	program, err := os.ReadFile(compileC(f, branching, "-O2", "-g", "-nostdlib", "-static"))
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
		must(t, err)
		defer file.Close()
		_, err = file.Write(b)
		must(t, err)
		p, err := Load(file, "fuzzed", Selection{})
		if err != nil {
			if text := err.Error(); !strings.Contains(text, "fuzzed") ||
				strings.Contains(text, "mistake of wpptrace's") {
				t.Fatal(err)
			}
			return
		}
		lines, err := p.Image.Lines()
		if err != nil {
			return
		}
		sources := newSourceTable(&wpp.Snapshot{})
		for _, r := range p.Plan.Routines {
			sources.fill(&wpp.Routine{}, r.Routine, lines)
		}
	})
}
