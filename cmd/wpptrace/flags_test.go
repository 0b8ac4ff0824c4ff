package main

import (
	"testing"
	"time"

	"github.com/spf13/pflag"

	"wpptrace/query"
)

func TestParseTime(t *testing.T) {
	for _, c := range []struct {
		text string
		want time.Duration // -1: an error
	}{
		{"10", 10 * time.Second}, {"0.5", 500 * time.Millisecond},
		{"300ms", 300 * time.Millisecond}, {"1m30s", 90 * time.Second}, {"2m", 2 * time.Minute},
		{"-3", -3 * time.Second}, {"0", 0},
		{"", -1}, {"soon", -1}, {"5u", -1}, {"10 s", -1}, {"1h30", -1}, {"1m30", -1}, {"1e3", -1},
		{"9999999999999", -1},
	} {
		got, err := parseTime(c.text)
		if (err != nil) != (c.want == -1) || err == nil && got != c.want {
			t.Errorf("%q: %v, %v; want %v", c.text, got, err, c.want)
		}
	}
}

func TestSetCost(t *testing.T) {
	for _, c := range []struct {
		text  string
		cost  uint64
		share float64
		ok    bool
	}{
		{"1000", 1000, 0, true}, {"5%", 0, 0.05, true}, {"0.1%", 0, 0.001, true}, {"100%", 0, 1,
			true}, {"0", 0, 0, true},
		{"101%", 0, 0, false}, {"-1%", 0, 0, false}, {"nan%", 0, 0, false}, {"%", 0, 0, false},
		{"5 %", 0, 0, false},
		{"-1", 0, 0, false}, {"5x", 0, 0, false}, {"1e3", 0, 0, false}, {"", 0, 0, false},
	} {
		q := query.DefaultHotQuery()
		err := setCost(&q, c.text)
		if (err == nil) != c.ok || c.ok && (q.MinCost != c.cost || q.MinShare != c.share) {
			t.Errorf("%q: cost %d, share %v, %v; want %d, %v", c.text, q.MinCost, q.MinShare, err,
				c.cost, c.share)
		}
	}
}

// Each flag that may be given a bad value says what a good one is.
func TestValuesOfFlags(t *testing.T) {
	root := rootCommand()
	for _, c := range append(root.Commands(), root) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Value.Set("no value of any kind") == nil {
				return
			}
			if kind, _ := pflag.UnquoteUsage(f); values[kind] == "" {
				t.Errorf("%s --%s: nothing says what %q is", c.Name(), f.Name, kind)
			}
		})
	}
}
