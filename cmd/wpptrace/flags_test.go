package main

import (
	"testing"
	"time"

	"github.com/spf13/pflag"
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
