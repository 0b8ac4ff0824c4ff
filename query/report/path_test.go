package report

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"wpptrace/query/names"
	"wpptrace/query/querytest"
)

// A path is found by its name as the table of hot subpaths prints it, shortened or not.
func TestWritePath(t *testing.T) {
	s := querytest.Compressor()
	const long = "longest_match(std::vector<unsigned char, std::allocator<unsigned char> > " +
		"const&, unsigned int, unsigned int)"
	for name, want := range map[string]string{
		long + "#1": long + "#1 in squeeze, from loop to return: 6 instructions, ran 100 times\n" +
			"  ADDRESSES          INSNS  SOURCE\n" +
			"  2000-2003              4  /src/squeeze/match.c:110-118\n" +
			"  200b                   1  /src/squeeze/main.c:3-4\n" +
			"  2004                   1  /src/squeeze/match.c:105\n",
		"main#3": "main#3 in squeeze, from call to cut: 1 instruction, ran 1 time\n" +
			"  ADDRESSES          INSNS  SOURCE\n" +
			"  100d                   1  /src/squeeze/main.c:20-21\n",
		"sub_3000#0": "sub_3000#0 in lib z.so, from entry to return: 2 instructions, ran 1 time\n" +
			"  ADDRESSES          INSNS  SOURCE\n" +
			"  3000-3001              2\n",
	} {
		routine, number, _ := strings.Cut(name, "#")
		for _, name := range []string{name, names.ShortenMiddle(name, 40),
			"'" + routine + "'#" + number} {
			var out bytes.Buffer
			if err := WritePath(&out, s, name); err != nil || out.String() != want {
				t.Errorf("%s: %v, %q; want %q", name, err, out.String(), want)
			}
		}
	}
	if err := WritePath(io.Discard, s, "ain#1"); err == nil ||
		err.Error() != "look for path ain#1: no routine ain, but main" {
		t.Errorf("error %v", err)
	}
	for name, why := range map[string]string{
		"": "it has no number", "main": "it has no number", "main#": "its number is none",
		"#gap": "its number is none", "main#4": "the routine has 3 paths",
		"x#0": "there is no such routine", "#1": "there is no such routine",
		"m...m#1": "there is no such routine", "\x1b#1": "there is no such routine",
	} {
		var out bytes.Buffer
		err := WritePath(&out, s, name)
		if want := "look for path " + names.Printable(name) + ": " + why +
			": name one as "; err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", name, err, want)
		}
		if out.Len() > 0 {
			t.Errorf("%q: wrote %q", name, &out)
		}
	}
}

// Of routines of one name, each is found by its address and all are without.
func TestWritePathOfOneName(t *testing.T) {
	s := querytest.Letters("aba")
	s.Routines[1].Name = "a"
	for name, want := range map[string][]string{"a#0": {"a@1000#0", "a@2000#0"},
		"a@2000#0": {"a@2000#0"}} {
		var out bytes.Buffer
		if err := WritePath(&out, s, name); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(out.String(), " in letters"); n != len(want) {
			t.Errorf("%s: %d paths\n%s", name, n, &out)
		}
		for _, text := range want {
			if !strings.Contains(out.String(), text) {
				t.Errorf("%s: no %s in\n%s", name, text, &out)
			}
		}
	}
}
