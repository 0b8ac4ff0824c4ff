package main

import (
	"reflect"
	"regexp"
	"testing"

	"wpptrace/compress/wpp"
	"wpptrace/query"
)

// TestSlowDownOfShortCommand: all hits of a command count that is over before any has come.
func TestSlowDownOfShortCommand(t *testing.T) {
	t.Chdir(t.TempDir())
	_, errs, status := wpptrace("-q", "-o", "x.wpp", "--", "bash", "-c", ":")
	if status != 0 {
		t.Fatal(errs)
	}
	s, err := wpp.ReadFile("x.wpp")
	if err != nil {
		t.Fatal(err)
	}
	stat := query.NewStat(s, 0)
	if hits := float64(stat.Hits) * float64(stat.HitTime) / 1e9; hits > stat.CPUSeconds {
		t.Errorf("hits took %v of %v s", hits, stat.CPUSeconds)
	}
	if stat.SlowDown < 2 || stat.SlowDownVague != (stat.SlowDownMost > 0) {
		t.Errorf("slow-down %v, vague: %v, at most %v", stat.SlowDown, stat.SlowDownVague, stat.SlowDownMost)
	}
}

// Each figure is explained.
func TestStatHelp(t *testing.T) {
	out, _, _ := wpptrace("stat", "--help")
	figures := reflect.TypeFor[query.Stat]()
	for i := range figures.NumField() {
		name := figures.Field(i).Tag.Get("json")
		if !regexp.MustCompile(`(?m)^  ([^.]*\W)?` + name + `\b`).MatchString(out) {
			t.Errorf("%s is not explained in\n%s", name, out)
		}
	}
}
