package deeds_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"wpptrace/compress/ops"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/wpptest"
	"wpptrace/query/internal/deeds"
	"wpptrace/query/querytest"
)

// A recorder notes what it is told, as kinds and positions.
type recorder struct {
	told []string
	idle bool
	stop error
}

func (r *recorder) Read(d *deeds.Deed) error {
	r.told = append(r.told, fmt.Sprint([]string{"call", "return", "use"}[d.Kind], d.At.Position))
	return r.stop
}

func (r *recorder) Forget()      { r.told = append(r.told, "forget") }
func (r *recorder) IsIdle() bool { return r.idle }

// TestRead: a reader is told what is asked for and no more, and in segments that no first deed is
// in only where it waits for something; its error ends the reading.
func TestRead(t *testing.T) {
	stop := errors.New("enough")
	for name, c := range map[string]struct {
		uses, returns, first bool
		gap                  bool // ends the thread
		reader               recorder
		want                 string
	}{
		"calls":                {first: true, want: "call0 call1"},
		"calls and accesses":   {first: true, uses: true, want: "call0 use0 use0 call1 use1 use1"},
		"calls and returns":    {first: true, returns: true, want: "call0 return0 call1 return1"},
		"nothing can begin":    {reader: recorder{idle: true}, want: ""},
		"but it waits":         {want: "call0 call1"},
		"begins while idle":    {first: true, reader: recorder{idle: true}, want: "call0 call1"},
		"a gap":                {first: true, gap: true, want: "call0 call1 forget"},
		"an error":             {first: true, reader: recorder{stop: stop}, want: "call0"},
		"a gap of an idle one": {gap: true, reader: recorder{idle: true}, want: "forget"},
	} {
		s := querytest.Values()
		if c.gap {
			gap := uint32(len(s.Symbols))
			s.Symbols = append(s.Symbols, wpp.Symbol{IsMark: true, Mark: ops.Gap})
			s.Threads[0].Grammar = wpptest.GrammarOf(0, 1, gap)
		}
		d, err := deeds.Of(s, deeds.Asked{Names: []string{"clip"}, Uses: c.uses,
			Returns: c.returns, IsFirst: func(deeds.Kind, int) bool { return c.first }})
		if err != nil {
			t.Fatal(err)
		}
		err = d.Read(0, &c.reader)
		if got := strings.Join(c.reader.told, " "); got != c.want ||
			!errors.Is(err, c.reader.stop) {
			t.Errorf("%s: %s, %v, want %s, %v", name, got, err, c.want, c.reader.stop)
		}
		if got := d.Traced(); !slices.Equal(got, []string{"clip"}) || d.Unnamed() != 0 {
			t.Errorf("%s: traced %q, %d unnamed", name, got, d.Unnamed())
		}
	}
}

// TestOfRefuses: what is no routine, and no function that traced code calls.
func TestOfRefuses(t *testing.T) {
	for name, want := range map[string]string{
		"clip#1": "clip#1 is a path: of a call with values, name the routine",
		"free": "no routine free: name one as dump prints it, in quotes if there are spaces or " +
			"signs in it; and no traced code calls a function of that name",
	} {
		if _, err := deeds.Of(querytest.Values(), deeds.Asked{Names: []string{name}}); err == nil ||
			err.Error() != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}
