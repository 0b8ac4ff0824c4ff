package chart_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"wpptrace/internal/testenv"
	"wpptrace/loader/cfg/recovery"
	"wpptrace/loader/image"
	"wpptrace/loader/plan"
	"wpptrace/loader/plan/chart"
	"wpptrace/loader/plan/planner"
)

var update = flag.Bool("update", false, "write the golden files")

// planned plans the program at path, single-stepped probes and all.
func planned(t testing.TB, path string) (*plan.Plan, *image.Lines) {
	t.Helper()
	im, err := image.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { im.Close() })
	program, err := recovery.Recover(im)
	if err != nil {
		t.Fatal(err)
	}
	p, err := planner.Make(program, planner.Options{Complete: true})
	if err != nil {
		t.Fatal(err)
	}
	lines, err := im.Lines()
	if err != nil {
		lines = nil
	}
	return p, lines
}

// assembled is the program of testdata.
func assembled(t testing.TB) string {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err != nil {
		testenv.Missing(t, err)
	}
	path := filepath.Join(t.TempDir(), "routines")
	args := []string{"-g", "-nostdlib", "-static", "-Wl,-Ttext=0x401000", "-Wl,--build-id=none",
		"-o", path, "testdata/routines.s"}
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

func routine(t testing.TB, p *plan.Plan, name string) *plan.Routine {
	t.Helper()
	i := slices.IndexFunc(p.Routines, func(r *plan.Routine) bool { return r.Name == name })
	if i < 0 {
		t.Fatalf("no routine %s", name)
	}
	return p.Routines[i]
}

func asItIs(name string) string { return name }

// The charts of a routine of six blocks, and of one for each kind of captured value, are as in the
// golden files, which -update writes.
func TestCharts(t *testing.T) {
	p, lines := planned(t, assembled(t))
	for _, name := range []string{"letters", "pick", "bits", "sum"} {
		c := chart.Of(p, routine(t, p, name), lines)
		var text, dot bytes.Buffer
		if err := c.WriteText(&text, asItIs); err != nil {
			t.Fatal(err)
		}
		if err := c.WriteDot(&dot, asItIs); err != nil {
			t.Fatal(err)
		}
		object, err := json.MarshalIndent(c, "", "\t")
		if err != nil {
			t.Fatal(err)
		}
		compare(t, name+".txt", text.Bytes())
		if name == "letters" {
			compare(t, name+".dot", dot.Bytes())
			compare(t, name+".json", append(object, '\n'))
		}
	}
}

func compare(t *testing.T, file string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: got\n%s\nwant\n%s", file, got, want)
	}
}

// Between the same two events, with what the first records, there is one route: that is what a plan
// promises. Each block that can run is on a route or has a probe. Where one leads from the entry to
// the end, an activation can run without an event, and nowhere else.
func TestRoutesAreTheOnlyOnes(t *testing.T) {
	for _, path := range []string{"/bin/true", "/bin/gzip"} {
		if !testenv.Have(t, path) {
			continue
		}
		p, lines := planned(t, path)
		for _, r := range p.Routines {
			if !r.Traced() {
				continue
			}
			c := chart.Of(p, r, lines)
			if c.Unlisted {
				continue
			}
			met := map[string][]int{}
			eventless := slices.ContainsFunc(c.Routes, func(route chart.Route) bool {
				return route.From == chart.Entry &&
					(route.To == chart.Exit || route.To == chart.Never)
			})
			if c.ProbeFree != (eventless && r.ProbeFree) {
				t.Errorf("%s: runs without an event: %v, and a route does: %v", r.Name,
					c.ProbeFree, eventless)
			}
			for _, route := range c.Routes {
				from := fmt.Sprint(route.From, said(route.Outcome), said(route.Value), route.To)
				if route.From == chart.Entry { // of several entries each has a probe
					from += fmt.Sprint(slices.Concat(route.Blocks, []int{route.To})[0])
				}
				if route.To == chart.Never { // the events of what never returns say who called it
					from += fmt.Sprint(route.Blocks[len(route.Blocks)-1])
				}
				if other, twice := met[from]; twice {
					t.Errorf("%s: from %d two routes lead to %d: %d and %d", r.Name, route.From,
						route.To, other, route.Blocks)
				}
				met[from] = route.Blocks
			}
			for _, b := range c.Blocks {
				if b.Probe == nil && len(b.KnownBy) == 0 && reachable(c, b.Number) {
					t.Errorf("%s: block %d is on no route", r.Name, b.Number)
				}
			}
		}
	}
}

func said[T any](v *T) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprint(*v)
}

// reachable reports whether the entry, or a landing pad, leads to a block.
func reachable(c *chart.Chart, block int) bool {
	seen := map[int]bool{chart.Exit: true}
	var queue []int
	for i := range c.Blocks {
		if c.Blocks[i].Entered != "" {
			queue = append(queue, i)
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		if !seen[queue[0]] {
			seen[queue[0]] = true
			queue = append(queue, c.Blocks[queue[0]].Next...)
		}
	}
	return seen[block]
}

// A routine that is left out has a chart that says why.
func TestChartOfARoutineThatIsLeftOut(t *testing.T) {
	p, _ := planned(t, assembled(t))
	r := routine(t, p, "letters")
	r.LeftOut = "for a test"
	c := chart.Of(p, r, nil)
	var text, dot bytes.Buffer
	if err := c.WriteText(&text, asItIs); err != nil {
		t.Fatal(err)
	}
	if err := c.WriteDot(&dot, asItIs); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "left out   for a test\n") ||
		!strings.Contains(dot.String(), "left out: for a test") || len(c.Blocks) > 0 {
		t.Errorf("%s\n%s", &text, &dot)
	}
}

func ExampleOf() {
	im, err := image.OpenFile("/bin/true")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer im.Close()
	program, err := recovery.Recover(im)
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := planner.Make(program, planner.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	i := slices.IndexFunc(p.Routines, func(r *plan.Routine) bool { return r.Addr == im.Entry })
	c := chart.Of(p, p.Routines[i], nil)
	fmt.Println("the entry point has a source line:", c.Source != nil)
	// Output: the entry point has a source line: false
}
