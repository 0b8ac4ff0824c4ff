package slice_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"wpptrace/compress/wpp"
	"wpptrace/query/querytest"
	"wpptrace/query/slice"
	"wpptrace/query/values"
)

// What is stored the first time is the limit, because the argument was greater.
func ExampleAsk() {
	a, err := slice.Ask(querytest.Values(),
		slice.Query{At: "clip+0xb", Instance: 1, By: slice.Data | slice.Control})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range a.Parts {
		fmt.Printf("%#x %d", p.Addr, p.Times)
		for _, r := range p.Last.Written {
			fmt.Printf(" register %d is %d", r.Number, r.Value)
		}
		fmt.Println()
	}
	// Output:
	// 0x40100b 1
	// 0x401008 1 register 0 is 5
	// 0x401006 1
	// 0x401003 1
	// 0x401000 1 register 0 is 7
}

func TestAsk(t *testing.T) {
	for _, c := range []struct {
		query slice.Query
		want  string // addresses in the routine
	}{
		{slice.Query{At: "clip+0xb", Instance: 1, By: slice.Data}, "b 8"},
		{slice.Query{At: "clip+0xb", Instance: 2, By: slice.Data}, "b 0"},
		{slice.Query{At: "clip+11", By: slice.Data}, "b 0"},
		{slice.Query{At: "clip+0x8", By: slice.Control}, "8 6"},
		{slice.Query{At: "clip+0x8", By: slice.Data | slice.Control}, "8 6 3 0"},
		{slice.Query{At: "clip", Instance: 1, By: slice.Data, Forward: true}, "0 3 6"},
		{slice.Query{At: "clip", Instance: 1, By: slice.Data | slice.Control, Forward: true},
			"0 3 6 8 b"},
		{slice.Query{At: "clip.c:2", Instance: 2, By: slice.Data, Forward: true}, "0 3 6 b"},
		{slice.Query{At: "clip+0", TID: 4711, By: slice.Data, Forward: true}, "0 3 6 b"},
	} {
		a, err := slice.Ask(querytest.Values(), c.query)
		if err != nil {
			t.Errorf("%+v: %v", c.query, err)
			continue
		}
		var got []string
		for _, p := range a.Parts {
			got = append(got, fmt.Sprintf("%x", p.Addr-0x401000))
		}
		if strings.Join(got, " ") != c.want || a.In != len(got) {
			t.Errorf("%+v: %s, want %s", c.query, got, c.want)
		}
	}
}

func TestAskFails(t *testing.T) {
	for at, want := range map[string]string{
		"clip+0x1": "find clip+0x1: no instruction that ran begins there",
		"clap+0":   "find clap+0: no routine clap",
		"clip+8":   "find clip+8: there is no instance 2: it has 1 to 1",
	} {
		_, err := slice.Ask(querytest.Values(), slice.Query{At: at, Instance: 2, By: slice.Data})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", at, err, want)
		}
	}
	if _, err := slice.Ask(&wpp.Snapshot{}, slice.Query{At: "clip"}); !errors.Is(err,
		values.ErrNone) {
		t.Error(err)
	}
}

// Of all that the store depends on, the line that computed what it stores is a dependence away, and
// so is that which decided that it did.
func TestLines(t *testing.T) {
	s := querytest.Values()
	for _, c := range []struct {
		query slice.Query
		want  string // line, how far away, how often
	}{
		{slice.Query{At: "clip+0xb", Instance: 1, By: slice.Data}, "0:0:1 3:1:1"},
		{slice.Query{At: "clip+0xb", Instance: 2, By: slice.Data}, "0:0:1 2:1:1"},
		{slice.Query{At: "clip+0xb", Instance: 1, By: slice.Data | slice.Control},
			"0:0:1 3:1:1 2:2:3"},
		{slice.Query{At: "clip+0", Instance: 1, By: slice.Data | slice.Control, Forward: true},
			"2:0:3 3:1:1 0:2:1"},
	} {
		a, err := slice.Ask(s, c.query)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range a.Lines(s) {
			got = append(got, fmt.Sprintf("%d:%d:%d", l.Span.Line, l.Away, l.Times))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%+v: %s, want %s", c.query, got, c.want)
		}
	}
}

// TestAskOfAFault: the slice of what faulted by its address is what made that, not what it would
// have stored.
func TestAskOfAFault(t *testing.T) {
	a, err := slice.Ask(querytest.Faulted(), slice.Query{At: "end", By: slice.Data | slice.Control})
	if err != nil || !a.Faulted {
		t.Fatalf("%+v, %v", a, err)
	}
	var got []string
	for _, p := range a.Parts {
		got = append(got, fmt.Sprintf("%x", p.Addr-0x401000))
		if p.Last == nil {
			t.Errorf("%x has no values", p.Addr)
		}
	}
	if strings.Join(got, " ") != "b" {
		t.Errorf("%s", got)
	}
}

// TestAskOfALine: of a source line, a slice is of all that an execution of it computed, and not of
// the jump at its end; what leads to any of these is as near as to the nearest.
func TestAskOfALine(t *testing.T) {
	s := querytest.Values()
	for _, c := range []struct {
		query slice.Query
		at    string // where it begins
		want  string // addresses, and how far away
	}{
		{slice.Query{At: "clip.c:2", Instance: 1, By: slice.Data}, "0 3", "3:0 0:0"},
		{slice.Query{At: "clip.c:2", By: slice.Data, Forward: true}, "0 3", "0:0 3:0 6:0 b:1"},
		{slice.Query{At: "clip.c:3", By: slice.Data | slice.Control}, "8", "8:0 6:1 3:1 0:1"},
	} {
		a, err := slice.Ask(s, c.query)
		if err != nil {
			t.Errorf("%+v: %v", c.query, err)
			continue
		}
		var at, got []string
		for _, p := range a.At {
			at = append(at, fmt.Sprintf("%x", p.Addr-0x401000))
		}
		for _, p := range a.Parts {
			got = append(got, fmt.Sprintf("%x:%d", p.Addr-0x401000, p.Away))
		}
		if strings.Join(at, " ") != c.at || strings.Join(got, " ") != c.want {
			t.Errorf("%+v: from %s %s, want %s %s", c.query, at, got, c.at, c.want)
		}
	}
}
