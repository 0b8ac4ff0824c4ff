package image

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

const variablesSource = `
typedef const unsigned char byte;
enum color { red, green = -3 } paint;
struct pair { int a, b; } both;
struct node {
	struct node *next;
	unsigned low : 3, high : 7;
	short grid[2][3];
	union { float f; char c; };
} *first;
byte letter = 'x';
double ratio;
long double wide;
volatile int sink;
__attribute__((noinline)) static int twice(short s, int *to, struct pair *p) {
	for (long i = 0; i < s; i++)
		*to += p->a;
	return *to * 2;
}
int main(int argc, char **argv) {
	static _Bool once;
	once = !once;
	struct pair p = {argc, 2};
	int sum = letter;
	sink = twice(argc, &sum, &p) + (argv != 0);
	return 0;
}
`

// TestVariables: what debug information of different compilers and versions says of variables is
// found, with locations within the code of their routines.
func TestVariables(t *testing.T) {
	want := []string{"argc 4 signed", "argv 8 pointer", "both 8 struct global",
		"first 8 pointer global", "i 8 signed", "letter 1 char global", "once 1 bool", "p 8 pointer",
		"p 8 struct", "paint 4 signed global", "ratio 8 float global", "s 2 signed",
		"sink 4 signed global", "sum 4 signed", "to 8 pointer", "wide 16 other global"}
	kinds := []string{"other", "unsigned", "signed", "float", "bool", "char", "signed char",
		"pointer", "struct", "array"}
	for _, flags := range []string{"gcc -O0 -gdwarf-5", "gcc -O0 -gdwarf-4", "gcc -O1 -gdwarf-5",
		"gcc -O1 -gdwarf-4", "clang -O0 -gdwarf-5", "clang -O1 -gdwarf-5", "clang -O1 -gdwarf-4"} {
		t.Run(flags, func(t *testing.T) {
			f := strings.Fields(flags)
			im := mustOpen(t, compileWith(t, f[0], "v.c", variablesSource, f[1:]...))
			found, err := im.Variables(func(uint64) bool { return true })
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, v := range found.List {
				of := found.Types[v.Type]
				name := fmt.Sprintf("%s %d %s", v.Name, of.Size, kinds[of.Kind])
				if v.IsGlobal {
					name += " global"
				}
				for _, x := range v.Locations {
					if rangeAt(im, x.Lo) == nil && !v.IsGlobal || x.Lo >= x.Hi ||
						len(x.Expression) == 0 {
						t.Errorf("%s: %+v", name, x)
					}
				}
				if len(v.Locations) > 0 {
					got = append(got, name)
				}
				if v.Name == "first" {
					checkNode(t, found.Types, found.Types[v.Type].Of)
				}
			}
			slices.Sort(got)
			if got = slices.Compact(got); f[1] != "-O0" { // it may be in registers, by its members
				got = slices.DeleteFunc(got, func(name string) bool { return name == "p 8 struct" })
			}
			want := slices.Clone(want)
			if f[1] != "-O0" {
				want = slices.DeleteFunc(want,
					func(name string) bool { return name == "p 8 struct" })
			}
			if !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			none, err := im.Variables(func(uint64) bool { return false })
			isLocal := func(v Variable) bool { return !v.IsGlobal }
			if err != nil || slices.ContainsFunc(none.List, isLocal) {
				t.Errorf("of no routine: %v, %v", none, err)
			}
		})
	}
	im := mustOpen(t, compile(t, "v.c", variablesSource))
	if _, err := im.Variables(nil); !errors.Is(err, ErrNoLines) {
		t.Errorf("without debug information: %v", err)
	}
}

// checkNode: of the structure node, members are where compilers put them.
func checkNode(t *testing.T, types []Type, of int) {
	t.Helper()
	var got []string
	for _, m := range types[of].Members {
		x := types[m.Type]
		got = append(got, fmt.Sprintf("%s %d.%d:%d %d", m.Name, m.Offset, m.FirstBit, m.Bits,
			x.Kind))
		if m.Name == "next" && x.Of != of {
			t.Errorf("next is a pointer to type %d, not to %d", x.Of, of)
		}
		if m.Name == "grid" && (x.Count != 2 || types[x.Of].Count != 3 ||
			types[types[x.Of].Of].Size != 2) {
			t.Errorf("grid is %+v of %+v", x, types[x.Of])
		}
	}
	want := []string{"next 0.0:0 7", "low 8.0:3 1", "high 8.3:7 1", "grid 10.0:0 9", " 24.0:0 8"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// FuzzVariables: whatever debug information says, there are variables within bounds, or an error.
func FuzzVariables(f *testing.F) {
	im := mustOpen(f, compile(f, "v.c", variablesSource, "-O1", "-g"))
	section := func(name string) []byte {
		s := im.file.parsed.Section(name)
		if s == nil {
			return nil
		}
		data, err := s.Data()
		if err != nil {
			f.Fatal(err)
		}
		return data
	}
	f.Add(section(".debug_abbrev"), section(".debug_info"), section(".debug_loclists"),
		section(".debug_rnglists"))
	f.Fuzz(func(t *testing.T, abbrev, info, lists, ranges []byte) {
		var b elfBuilder
		b.add(".text", elf.SHT_PROGBITS, elf.SHF_ALLOC|elf.SHF_EXECINSTR, smallCode, 0,
			make([]byte, 64))
		at := uint64(smallCode + 64)
		for _, s := range []struct {
			name string
			data []byte
		}{{"abbrev", abbrev}, {"info", info}, {"line", nil}, {"addr", lists}, {"loc", lists}, {"loclists", lists},
			{"rnglists", ranges}} {
			b.add(".debug_"+s.name, elf.SHT_PROGBITS, 0, at, 0, s.data)
			at += uint64(len(s.data))
		}
		file := b.finish()
		im, err := Open(bytes.NewReader(file), int64(len(file)), "fuzzed")
		if err != nil {
			t.Fatal(err)
		}
		found, err := im.Variables(func(uint64) bool { return true })
		if err != nil && !strings.HasPrefix(err.Error(), "read variables of fuzzed: ") {
			t.Error(err)
		}
		if err != nil {
			return
		}
		for _, v := range found.List {
			if v.Name == "" || v.Type < 0 || v.Type >= len(found.Types) {
				t.Errorf("%+v", v)
			}
		}
		for _, x := range found.Types {
			isOutside := func(m Member) bool { return m.Type < 0 || m.Type >= len(found.Types) }
			if x.Of < nowhere || x.Of >= len(found.Types) ||
				slices.ContainsFunc(x.Members, isOutside) {
				t.Errorf("%+v", x)
			}
		}
	})
}
