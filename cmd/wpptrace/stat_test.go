package main

import (
	"reflect"
	"regexp"
	"testing"

	"wpptrace/query"
)

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
