package main

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"wpptrace/compress/wpp/store"
	"wpptrace/query"
)

// TestSlowDownOfShortCommand: all hits of a command count that is over before any has come.
func TestSlowDownOfShortCommand(t *testing.T) {
	t.Chdir(t.TempDir())
	_, errs, status := wpptrace("-q", "-o", "x.wpp", "--", "bash", "-c", ":")
	if status != 0 {
		t.Fatal(errs)
	}
	s, err := store.ReadFile("x.wpp")
	if err != nil {
		t.Fatal(err)
	}
	stat, err := query.NewStat(s, 0)
	if err != nil {
		t.Fatal(err)
	}
	hits := float64(stat.Hits) * float64(stat.HitTime) / 1e9
	if hits > stat.CPUSeconds {
		t.Errorf("hits took %v of %v s", hits, stat.CPUSeconds)
	}
	const sure = 0.5 // of the time of hits, as it is measured
	if least := 1 / (1 - sure*hits/stat.CPUSeconds); stat.Hits == 0 || stat.SlowDown < least ||
		stat.SlowDownVague != (stat.SlowDownMost > 0) {
		t.Errorf("slow-down %v, want %v or more, vague: %v, at most %v", stat.SlowDown, least,
			stat.SlowDownVague, stat.SlowDownMost)
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

// TestNoProgramTables: what a snapshot of a trace does not have is said to be missing, and
// not just left out.
func TestNoProgramTables(t *testing.T) {
	dir := t.TempDir()
	trace, snapshot := filepath.Join(dir, "x.u32"), filepath.Join(dir, "x.wpp")
	must(t, os.WriteFile(trace, make([]byte, 40), 0o600))
	if _, errs, status := wpptrace("compress", "--symbols", trace, "-o", snapshot); status != 0 {
		t.Fatal(errs)
	}
	const why = " has no program tables: the raw trace that it was made of does not say what its " +
		"paths consist of, nor where routines are\n"
	for command, want := range map[string]string{
		"dump --as insns":  "wpptrace: " + snapshot + why,
		"dump --as blocks": "wpptrace: " + snapshot + why,
		"stat --routines":  "wpptrace: " + snapshot + why,
		"path symbols#0":   "wpptrace: " + snapshot + why,
		"dump":             "", "stat": "",
	} {
		if _, errs, status := wpptrace(append(strings.Fields(command), snapshot)...); errs !=
			want || status != 0 {
			t.Errorf("%s: status %d, %q, want %q", command, status, errs, want)
		}
	}
}
