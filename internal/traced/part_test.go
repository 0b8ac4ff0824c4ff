package traced

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"wpptrace/internal/remedy"
	"wpptrace/loader/cfg"
	"wpptrace/loader/cfg/recovery"
	"wpptrace/loader/image"
	"wpptrace/loader/plan/verify"
)

// A large program of which a part is recovered is planned by names, and its plan is proven; what
// matches none of its names is a mistake as ever.
func TestLargeProgram(t *testing.T) {
	defer func(n int) { large = n }(large)
	large = 0
	f, err := os.Open("/bin/bash")
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	only := []*regexp.Regexp{regexp.MustCompile("^execute_"), regexp.MustCompile("^expand_")}
	p, err := Load(f, "bash", Selection{Only: only})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Plan.Sites) < 100 || len(p.Plan.Program.Outside) < 500 {
		t.Errorf("%d sites, %d parts outside", len(p.Plan.Sites), len(p.Plan.Program.Outside))
	}
	for _, fault := range verify.Plan(p.Plan) {
		t.Error(fault)
	}
	traced := 0
	for _, r := range p.Plan.Routines {
		if r.Traced() {
			traced++
			if !only[0].MatchString(r.Name) && !only[1].MatchString(r.Name) {
				t.Errorf("%s is traced", r.Name)
			}
		}
	}
	if traced < 20 {
		t.Errorf("%d routines are traced", traced)
	}
	for _, none := range [][]string{{"^execute_", "^exekute_"}, {"^exekute_"}} {
		var only []*regexp.Regexp
		for _, s := range none {
			only = append(only, regexp.MustCompile(s))
		}
		_, got := Load(f, "bash", Selection{Only: only})
		large = 1 << 30
		_, want := Load(f, "bash", Selection{Only: only})
		large = 0
		if got == nil || want == nil || got.Error() != want.Error() ||
			!strings.Contains(got.Error(), "exekute_") {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

// A program that no plan can have probes enough for is refused before it is recovered.
func TestTooLargeProgram(t *testing.T) {
	const code = 80<<18 + 80
	im := &image.Image{Name: "big", Ranges: []image.Range{{Lo: 0, Hi: code}}}
	_, err := Selection{}.recover(nil, im, "big")
	want := "plan big: 20 MB of code need some 419432 probes, 262144 are possible"
	var e *remedy.Error
	if !errors.As(err, &e) || e.Error() != want || e.Kind != remedy.FewerProbes {
		t.Errorf("%v, want %s", err, want)
	}
}

// Of the routines that samples are in, those with the most are recovered, and no more than can be
// planned soon.
func TestHottest(t *testing.T) {
	im, err := image.OpenFile("/bin/bash")
	if err != nil {
		t.Skip(err)
	}
	defer im.Close()
	survey, err := recovery.Examine(im)
	if err != nil {
		t.Fatal(err)
	}
	samples := map[uint64]uint64{}
	var most, least uint64 // first addresses of routines with so many samples
	survey.Each(func(c recovery.Candidate) {
		n := uint64(len(samples)/2) + 1
		if n > 2*mostHot {
			return
		}
		if least == 0 {
			least = c.Ranges[0][0]
		}
		most = c.Ranges[0][0]
		samples[c.Ranges[0][0]], samples[c.Ranges[0][1]-1] = n, 1
	})
	samples[0] = 1 << 20 // in no routine
	hot := hottest(survey, samples, 2*mostHot)
	if len(hot) == 0 || len(hot) > mostHot || !hot[most] || hot[least] {
		t.Errorf("%d routines; the one with the most samples %v, with the least %v", len(hot),
			hot[most], hot[least])
	}
}

// A chooser has samples at some addresses, and takes all that is recovered.
type chooser map[uint64]uint64

func (c chooser) Addresses(*os.File, *image.Image) (map[uint64]uint64, int) { return c, 10 }

func (chooser) Routines(*os.File, *cfg.Program) map[*cfg.Routine]bool { return nil }

// TestMiddlingProgram: of a program that is not large a part is recovered, too, where samples say
// which: the routines that they are in, with small ones that these call; else all of it is.
func TestMiddlingProgram(t *testing.T) {
	defer func(n int) { middling = n }(middling)
	middling = 0
	f, err := os.Open("/bin/bash")
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	all, err := Load(f, "bash", Selection{Chooser: chooser{}})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(all.Plan.Program.Outside); n > 0 {
		t.Errorf("without samples, %d parts are outside", n)
	}
	var busy *cfg.Routine // that calls others
	callees := map[string]bool{}
	for _, r := range all.Plan.Program.Routines {
		if r.Name == "execute_command" {
			busy = r
			for b := range r.Blocks {
				if callee, _ := all.Plan.Program.Callee(r, b); callee != nil && callee != r {
					callees[callee.Name] = true
				}
			}
		}
	}
	if busy == nil || len(callees) == 0 {
		t.Skip("this bash has no routine execute_command")
	}
	part, err := Load(f, "bash", Selection{Chooser: chooser{busy.Addr: 5}})
	if err != nil {
		t.Fatal(err)
	}
	if len(part.Plan.Program.Outside) == 0 {
		t.Error("all of it is recovered")
	}
	names := map[string]bool{}
	for _, r := range part.Plan.Program.Routines {
		names[r.Name] = true
	}
	for name := range callees {
		if !names[name] && name != "execute_command_internal" { // which is large
			t.Errorf("without %s, which it calls", name)
		}
	}
	for _, fault := range verify.Plan(part.Plan) {
		t.Error(fault)
	}
}
