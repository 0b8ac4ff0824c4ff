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
enum color { red, green } paint;
struct pair { int a, b; } both;
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

// TestVariables: numbers and pointers of debug information of different versions are found, with
// locations within the code of their routines.
func TestVariables(t *testing.T) {
	want := []string{"argc 4 1", "argv 8 2", "i 8 1", "letter 1 0 global", "once 1 0", "p 8 2",
		"paint 4 0 global", "ratio 8 3 global", "s 2 1", "sink 4 1 global", "sum 4 1", "to 8 2"}
	for _, flags := range []string{"-O0 -gdwarf-5", "-O0 -gdwarf-4", "-O1 -gdwarf-5",
		"-O1 -gdwarf-4"} {
		t.Run(flags, func(t *testing.T) {
			im := mustOpen(t, compile(t, "v.c", variablesSource, strings.Fields(flags)...))
			list, err := im.Variables(func(uint64) bool { return true })
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, v := range list {
				name := fmt.Sprintf("%s %d %d", v.Name, v.Size, v.Kind)
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
			}
			slices.Sort(got)
			if got = slices.Compact(got); !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			none, err := im.Variables(func(uint64) bool { return false })
			isLocal := func(v Variable) bool { return !v.IsGlobal }
			if err != nil || slices.ContainsFunc(none, isLocal) {
				t.Errorf("of no routine: %v, %v", none, err)
			}
		})
	}
	im := mustOpen(t, compile(t, "v.c", variablesSource))
	if _, err := im.Variables(nil); !errors.Is(err, ErrNoLines) {
		t.Errorf("without debug information: %v", err)
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
		}{{"abbrev", abbrev}, {"info", info}, {"line", nil}, {"loc", lists}, {"loclists", lists},
			{"rnglists", ranges}} {
			b.add(".debug_"+s.name, elf.SHT_PROGBITS, 0, at, 0, s.data)
			at += uint64(len(s.data))
		}
		file := b.finish()
		im, err := Open(bytes.NewReader(file), int64(len(file)), "fuzzed")
		if err != nil {
			t.Fatal(err)
		}
		list, err := im.Variables(func(uint64) bool { return true })
		if err != nil && !strings.HasPrefix(err.Error(), "read variables of fuzzed: ") {
			t.Error(err)
		}
		for _, v := range list {
			if v.Name == "" || v.Size < 1 || v.Size > 8 {
				t.Errorf("%+v", v)
			}
		}
	})
}
