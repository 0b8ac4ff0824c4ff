package main

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"wpptrace/compress/wpp/samples"
	"wpptrace/internal/record"
	"wpptrace/internal/testenv"
)

// A status line is shown where stderr is a terminal, and taken away at the end.
func TestStatusLine(t *testing.T) {
	s := testenv.StartServer(t)
	if _, err := fmt.Fprintln(s.In, 1<<40); err != nil {
		// it never answers: the test's end is its end
		t.Fatal(err)
	}
	command := "wpptrace -p " + strconv.Itoa(s.PID()) + " -d 2500ms --max-slowdown 0 -o " +
		t.TempDir() + "/x.wpp"
	out, err := exec.Command("script", "-qec", command, "/dev/null").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text := string(out)
	for _, want := range []string{" paths/s  ring ", " rules  ratio ", "  lost 0", "\r\x1b[K"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %q", want, text)
		}
	}
	if _, after, _ := strings.Cut(text, "wpptrace: 2.5s are over"); strings.Contains(after,
		"paths/s") {
		t.Errorf("the line stays: %q", text)
	}
	s.IsClean()
}

// TestElsewhereText: a routine of the program that was left out may have used the time. It was said
// to be the kernel's or the libraries'.
func TestElsewhereText(t *testing.T) {
	const leftOut = "the 3 routines of the program that are left out (wpptrace plan -v lists " +
		"them), or to the kernel"
	for _, c := range []struct {
		leftOut   int
		needed    []string
		libraries bool
		want      string
	}{
		{3, nil, false, leftOut},
		{3, []string{"a.so", "b.so"}, false, leftOut + ", or to shared libraries: --lib traces " +
			"those, as a.so, b.so"},
		{3, []string{"a.so"}, true, leftOut + ", or to shared libraries"},
		{0, []string{"a.so"}, true, "the kernel, or to shared libraries"},
	} {
		if got := elsewhereText(c.leftOut, c.needed, c.libraries); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// TestStatusText: with windows the live line says how many there were and what is hot so far.
func TestStatusText(t *testing.T) {
	p := printer{}
	s := record.Status{Duration: 5 * time.Second, Paths: 16400, Windows: 15, Overhead: 0.0512,
		Hottest:      "std::vector<int, std::allocator<int> >::push_back",
		HottestShare: samples.Share{Samples: 81, Of: 1000}}
	const want = "5s  15 windows  16.4k paths  overhead 5.12%  lost 0  hottest "
	const widest = 100
	if got := p.statusText(s, time.Second); len(got) > widest || !strings.HasPrefix(got, want) ||
		!strings.HasSuffix(got, " 8%") {
		t.Errorf("%q, want %q...", got, want)
	}
}
