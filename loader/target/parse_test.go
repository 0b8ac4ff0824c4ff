package target

import (
	"os"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	for _, c := range []struct {
		line string
		want stat
		ok   bool
	}{
		{"42 (sh) S 1 1 1 0 -1 4194304 100 0 0 0 1 2 0 0 20 0 1 0 12345 0 0",
			stat{'S', 1, false, 10 * time.Millisecond}, true},
		{"42 (a) b) (c) R 1 1 1 0 -1 4194304 100 0 0 0 1 2 0 0 20 0 1 0 7 0 0",
			stat{'R', 1, false, 10 * time.Millisecond}, true},
		{"2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 3 0 0", stat{'S', 0, true, 0},
			true},
		{"42 (sh) S 1 1 1 0 -1 4194304 100 0 0 0", stat{}, false},
		{"42 (sh) S 1 1 1 0 -1 many 100 0 0 0 1 2 0 0 20 0 1 0 12345 0 0", stat{}, false},
		{"42 (sh) S 1 1 1 0 -1 4194304 100 0 0 0 -5 2 0 0 20 0 1 0 12345 0 0", stat{}, false},
		{"42 (sh) S many 1 1 0 -1 4194304 100 0 0 0 1 2 0 0 20 0 1 0 12345 0 0", stat{}, false},
		{"", stat{}, false},
	} {
		got, err := parseStat([]byte(c.line))
		if got != c.want || (err == nil) != c.ok {
			t.Errorf("%q: %+v, %v; want %+v", c.line, got, err, c.want)
		}
	}
}

func TestParseMapping(t *testing.T) {
	for _, c := range []struct {
		line string
		want Mapping
		file FileID
		ok   bool
	}{
		{"555555554000-555555556000 r--p 00000000 fe:00 1234    /usr/bin/true",
			Mapping{Lo: 0x555555554000, Hi: 0x555555556000}, FileID{"fe:00", 1234}, true},
		{"555555556000-55555555a000 r-xp 00002000 fe:00 1234    /a file (deleted)",
			Mapping{Lo: 0x555555556000, Hi: 0x55555555a000, Offset: 0x2000, Exec: true},
			FileID{"fe:00", 1234}, true},
		{"7ffff7fc9000-7ffff7fcd000 r--p 00000000 00:00 0       [vvar]",
			Mapping{Lo: 0x7ffff7fc9000, Hi: 0x7ffff7fcd000}, FileID{"00:00", 0}, true},
		{"400000-401000 rwxs 00000000 fe:00 1234",
			Mapping{Lo: 0x400000, Hi: 0x401000, Exec: true, Write: true, Shared: true},
			FileID{"fe:00", 1234}, true},
		{"555555556000 r-xp 00002000 fe:00 1234", Mapping{}, FileID{}, false},
		{"555555556000-x r-xp 00002000 fe:00 1234", Mapping{}, FileID{}, false},
		{"5-6 r 0 0 0", Mapping{}, FileID{}, false},
		{"", Mapping{}, FileID{}, false},
	} {
		got, file, ok := parseMapping(c.line)
		if got != c.want || file != c.file || ok != c.ok {
			t.Errorf("%q: %+v %v %v, want %+v %v %v", c.line, got, file, ok, c.want, c.file, c.ok)
		}
	}
}

func TestHasShadowStack(t *testing.T) {
	for status, want := range map[string]bool{
		"Name:\tsh\nx86_Thread_features:\tshstk wrss\nx86_Thread_features_locked:\t\n": true,
		"Name:\tsh\nx86_Thread_features:\t\nx86_Thread_features_locked:\tshstk\n":      false,
		"Name:\tx86_Thread_features: shstk\n":                                          false,
		"x86_Thread_features:\tnoshstk\n":                                              false,
		"":                                                                             false,
	} {
		if got := hasShadowStack(status); got != want {
			t.Errorf("%q: %v", status, got)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	if b, err := os.ReadFile("/proc/self/stat"); err == nil {
		f.Add(b)
	}
	f.Add([]byte("42 (a) b) S 1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, err := parseStat(b); err != nil && s != (stat{}) {
			t.Errorf("%+v with error %v", s, err)
		}
	})
}

func FuzzParseMapping(f *testing.F) {
	f.Add("555555556000-55555555a000 r-xp 00002000 fe:00 1234    /usr/bin/true")
	f.Add("- r-xp  ")
	f.Fuzz(func(t *testing.T, line string) {
		if m, file, ok := parseMapping(line); !ok && (m != Mapping{} || file != FileID{}) {
			t.Errorf("%q: %+v %v, but not ok", line, m, file)
		}
	})
}
