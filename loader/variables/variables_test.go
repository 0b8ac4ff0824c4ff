package variables_test

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"wpptrace/loader/image"
	"wpptrace/loader/variables"
)

const source = `
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
			im := compiled(t, f[0], f[1:]...)
			found, err := variables.Of(im, func(uint64) bool { return true })
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, v := range found.Variables {
				of := found.Types[v.Type]
				name := fmt.Sprintf("%s %d %s", v.Name, of.Size, kinds[of.Kind])
				if v.IsGlobal {
					name += " global"
				}
				for _, x := range v.Locations {
					if !hasCode(im, x.Lo) && !v.IsGlobal || x.Lo >= x.Hi ||
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
			none, err := variables.Of(im, func(uint64) bool { return false })
			isLocal := func(v variables.Variable) bool { return !v.IsGlobal }
			if err != nil || slices.ContainsFunc(none.Variables, isLocal) {
				t.Errorf("of no routine: %v, %v", none, err)
			}
		})
	}
	im := compiled(t, "gcc")
	if _, err := variables.Of(im, nil); !errors.Is(err, image.ErrNoLines) {
		t.Errorf("without debug information: %v", err)
	}
}

// checkNode: of the structure node, members are where compilers put them.
func checkNode(t *testing.T, types []variables.Type, of int) {
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

// compiled opens a program that is compiled of the source.
func compiled(t testing.TB, compiler string, flags ...string) *image.Image {
	t.Helper()
	im, err := image.OpenFile(compile(t, compiler, flags...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { im.Close() })
	return im
}

func compile(t testing.TB, compiler string, flags ...string) (program string) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "v.c")
	program = filepath.Join(dir, "program")
	if err := os.WriteFile(path, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), compiler,
		append(flags, "-o", program, path)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", compiler, err, out)
	}
	return program
}

func hasCode(im *image.Image, addr uint64) bool {
	return slices.ContainsFunc(im.Ranges,
		func(r image.Range) bool { return r.Lo <= addr && addr < r.Hi })
}

// FuzzOf: whatever debug information says, there are variables within bounds, or an error.
func FuzzOf(f *testing.F) {
	program, err := os.ReadFile(compile(f, "gcc", "-O1", "-g"))
	if err != nil {
		f.Fatal(err)
	}
	parsed, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		f.Fatal(err)
	}
	// in has the section of a file; what is longer is cut off
	in := func(file []byte, name string) []byte {
		s := parsed.Section(".debug_" + name)
		if s == nil {
			return nil
		}
		return file[s.Offset : s.Offset+s.Size]
	}
	f.Add(in(program, "abbrev"), in(program, "info"), in(program, "loclists"),
		in(program, "rnglists"))
	f.Fuzz(func(t *testing.T, abbrev, info, lists, ranges []byte) {
		file := bytes.Clone(program)
		copy(in(file, "abbrev"), abbrev)
		copy(in(file, "info"), info)
		copy(in(file, "loclists"), lists)
		copy(in(file, "rnglists"), ranges)
		im, err := image.Open(bytes.NewReader(file), int64(len(file)), "fuzzed")
		if err != nil {
			t.Fatal(err)
		}
		found, err := variables.Of(im, func(uint64) bool { return true })
		if err != nil {
			if !strings.HasPrefix(err.Error(), "read variables of fuzzed: ") {
				t.Error(err)
			}
			return
		}
		isOutside := func(of int) bool { return of < 0 || of >= len(found.Types) }
		for _, v := range found.Variables {
			if v.Name == "" || isOutside(v.Type) {
				t.Errorf("%+v", v)
			}
		}
		for _, x := range found.Types {
			of := func(m variables.Member) bool { return isOutside(m.Type) }
			if x.Of != variables.NoType && isOutside(x.Of) || slices.ContainsFunc(x.Members, of) {
				t.Errorf("%+v", x)
			}
		}
	})
}

// What a distribution strips has no debug information.
func ExampleOf() {
	im, err := image.OpenFile("/bin/sh")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer im.Close()
	all := func(uint64) bool { return true }
	_, err = variables.Of(im, all)
	fmt.Println(errors.Is(err, image.ErrNoLines))
	// Output: true
}
