package sample

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"wpptrace/loader/target"
)

func TestFindNames(t *testing.T) {
	long := strings.Repeat("x", 200<<10)
	for _, c := range []struct {
		name, file string
		want       []string // of 0x10, 0x18, 0x20, 0xffffffffffffffff
	}{
		{"plain", "10 8 LazyCompile:*f app.js:1\n20 1 g\n", []string{"LazyCompile:*f app.js:1", "",
			"g", ""}},
		{"the last line holds", "10 10 old\n18 8 new\n", []string{"old", "new", "", ""}},
		{"0x, capitals, no name", "0x10 0x8 A\n18 8 \n20 1F B\n", []string{"A", "", "B", ""}},
		{"half a line at the end", "10 8 a\n18 8 b", []string{"a", "", "", ""}},
		{"no lines of the kind", "x\n10\n10 8\n10 zz a\n-1 8 a\n\n 10 8 a\n", []string{"", "", "", ""}},
		{"beyond all addresses", "fffffffffffffff0 ffff a\nffffffffffffffff 1 b\n" +
			"10000000000000010 8 c\n", []string{"", "", "", ""}},
		{"control characters", "10 8 a\x1b[2J\rb\n", []string{`a\x1b[2J\rb`, "", "", ""}},
		{"too long a line", "10 8 " + long + "\n18 8 b\n", []string{"", "b", "", ""}},
		{"a long name", "10 8 " + long[:1000] + "\n", []string{long[:maxName], "", "", ""}},
	} {
		names := make([]string, 4)
		err := findNames(strings.NewReader(c.file), []uint64{0x10, 0x18, 0x20, 1<<64 - 1}, names)
		if err != nil || !slices.Equal(names, c.want) {
			t.Errorf("%s: %q, %v, want %q", c.name, names, err, c.want)
		}
	}
}

// TestOverlappingNames: lines that all cover all addresses are given up.
func TestOverlappingNames(t *testing.T) {
	addresses := make([]uint64, 10000)
	for i := range addresses {
		addresses[i] = uint64(i)
	}
	file := strings.Repeat("0 ffff x\n", 10000)
	if err := findNames(
		strings.NewReader(file),
		addresses,
		make([]string, len(addresses)),
	); err == nil {
		t.Error("no error")
	}
}

func FuzzFindNames(f *testing.F) {
	f.Add([]byte("10 8 a\n18 8 b\n"))
	f.Add([]byte("0x10 ffffffffffffffff a\x1b\n\n"))
	f.Add(bytes.Repeat([]byte("10 8 aaaaaaaaaaaa"), 1000))
	f.Fuzz(func(t *testing.T, file []byte) {
		addresses := []uint64{0, 0x10, 0x18, 1 << 47}
		names := make([]string, len(addresses))
		if err := findNames(bytes.NewReader(file), addresses, names); err != nil {
			t.Fatal(err)
		}
		for _, n := range names {
			const mostOfOne = 10 // an escape of a character
			if len(n) > maxName*mostOfOne ||
				strings.ContainsFunc(n, func(r rune) bool { return r < ' ' }) {
				t.Errorf("%q", n)
			}
		}
	})
}

// TestNameFileOfOthers: what is no regular file of the process's user is not read.
func TestNameFileOfOthers(t *testing.T) {
	p, err := target.Open(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	name := fmt.Sprintf("/tmp/perf-%d.map", os.Getpid())
	const content = "10 8 named\n"
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		make func() error
		want string
	}{
		{"its own", func() error { return os.WriteFile(name, []byte(content), 0o600) }, "named"},
		{"another user's", func() error {
			if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
				return err
			}
			return os.Chown(name, 65534, 65534)
		}, ""},
		{"a link", func() error { return os.Symlink(other, name) }, ""},
		{"a pipe", func() error { return unix.Mkfifo(name, 0o600) }, ""},
		{"a directory", func() error { return os.Mkdir(name, 0o700) }, ""},
		{"nothing", func() error { return nil }, ""},
	} {
		os.Remove(name)
		if err := c.make(); err != nil {
			t.Fatal(c.name, err)
		}
		m := newNameMap(p)
		list := []placed{{hit: hit{0x10, 1}}}
		m.resolve(list)
		m.close()
		if list[0].name != c.want {
			t.Errorf("%s: %q, want %q", c.name, list[0].name, c.want)
		}
	}
	os.Remove(name)
}

// TestLargeNameFile: of a file that is too large the end is read.
func TestLargeNameFile(t *testing.T) {
	p, err := target.Open(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	name := fmt.Sprintf("/tmp/perf-%d.map", os.Getpid())
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(name)
	defer f.Close()
	if _, err := f.WriteAt([]byte("\n10 8 last\n"), 1<<40); err != nil {
		t.Skip(err)
	}
	m := newNameMap(p)
	defer m.close()
	list := []placed{{hit: hit{0x10, 1}}}
	if m.resolve(list); list[0].name != "last" {
		t.Errorf("%q", list[0].name)
	}
}
