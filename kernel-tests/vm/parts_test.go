package vm

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wpptrace/internal/testenv"
)

func TestPick(t *testing.T) {
	for _, c := range []struct {
		series string
		names  []string
		want   string
	}{
		{"6.1", nil, ""},
		{"6.1", []string{"linux-image-6.1.0-9-cloud-amd64-unsigned",
			"linux-image-6.1.0-50-cloud-amd64-unsigned", "linux-image-6.1.0-50-cloud-amd64-dbg"},
			"linux-image-6.1.0-50-cloud-amd64-unsigned"},
		{"6.1", []string{"linux-image-6.1.0-50-rt-amd64-unsigned",
			"linux-image-6.1.0-50-cloud-amd64"}, ""},
		{"6.12", []string{"linux-image-6.12.9+bpo-cloud-amd64-unsigned",
			"linux-image-6.12.95+deb12-cloud-amd64-unsigned"},
			"linux-image-6.12.95+deb12-cloud-amd64-unsigned"},
		{"6.1", []string{"linux-image-6.12.95+deb12-cloud-amd64-unsigned"}, ""},
	} {
		if got := (Kernel{Series: c.series}).pick(c.names); got != c.want {
			t.Errorf("of %s: picked %q, want %q", c.series, got, c.want)
		}
	}
}

// A kernel that is kept is not fetched again.
func TestFetchKept(t *testing.T) {
	cache := t.TempDir()
	for _, name := range []string{"vmlinuz-6.1.0-9-cloud-amd64", "vmlinuz-6.1.0-50-cloud-amd64",
		"vmlinuz-6.12.95+deb12-cloud-amd64"} {
		if err := os.WriteFile(filepath.Join(cache, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Kernel{"6.1", "nowhere"}.Fetch(t.Context(), cache)
	if err != nil || filepath.Base(got) != "vmlinuz-6.1.0-50-cloud-amd64" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestRelay(t *testing.T) {
	for _, c := range []struct {
		text   string
		lines  []string
		status int
		ended  bool
	}{
		{"one\r\ntwo\n\nvm: exit status 3\n", []string{"one", "two", ""}, 3, true},
		{"one\n", []string{"one"}, 0, false},
		{"vm: exit status nought\n", nil, 0, false},
		{"", nil, 0, false},
	} {
		var lines []string
		status, ended := relay(strings.NewReader(c.text),
			func(line string) { lines = append(lines, line) })
		if d := cmp.Diff(c.lines, lines); d != "" || status != c.status || ended != c.ended {
			t.Errorf("%q: status %d, ended %v\n%s", c.text, status, ended, d)
		}
	}
}

func TestComplaint(t *testing.T) {
	for text, want := range map[string]bool{
		"":                                     false,
		"[ 1.0] ACPI: something minor\n":       false,
		"[ 1.0] WARNING: CPU: 0 PID: 1 at x\n": true,
		"[ 1.0] Kernel panic - not syncing\n":  true,
		"[ 9.0] uprobe: failed to unregister, leaking uprobe\n": true,
		"[ 9.0] Oops: double fault: 0000 [#1] PREEMPT\n":        true,
	} {
		if err := complaint(text); (err != nil) != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestTally(t *testing.T) {
	const text = `=== RUN   TestOne
=== RUN   TestOne/a
=== RUN   TestOne/b/c
--- PASS: TestOne (0.13s)
    --- PASS: TestOne/a (18.05s)
    --- SKIP: TestOne/b/c (0.00s)
=== RUN   TestTwo
--- FAIL: TestTwo (0.13s)
=== RUN   TestThree
    x_test.go:1: --- a remark
--- PASS: TestThree (0.13s)
`
	var got Tally
	for line := range strings.Lines(text) {
		got.Read(line)
	}
	if got.String() != "2 passed, 1 failed, 1 skipped" || got.Failed[0] != "TestTwo" {
		t.Errorf("%v, failed %v", &got, got.Failed)
	}
}

// A program comes with its libraries, at the paths where it looks for them, links included.
func TestTree(t *testing.T) {
	if _, err := exec.LookPath("cpio"); err != nil {
		testenv.Missing(t, err)
	}
	dir := t.TempDir()
	tree, err := newTree(filepath.Join(dir, "tree"))
	if err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data", "below")
	if err := os.MkdirAll(filepath.Dir(data), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(data, []byte("text"), 0o640); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/bin/true", "/bin/true", filepath.Dir(data)} {
		// twice does no harm
		if err := tree.add(t.Context(), path); err != nil {
			t.Fatal(err)
		}
	}
	packed := filepath.Join(dir, "packed")
	if err := tree.pack(t.Context(), packed); err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(packed)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	list := exec.Command("cpio", "--quiet", "--list")
	list.Stdin = in
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"usr/bin/true", "usr/lib/x86_64-linux-gnu/libc.so.6", "lib64",
		data[1:]} {
		if !strings.Contains("\n"+string(out), "\n"+want+"\n") {
			t.Errorf("%s is missing:\n%s", want, out)
		}
	}
}
