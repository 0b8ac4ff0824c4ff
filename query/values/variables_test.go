package values_test

import (
	"fmt"
	"strings"
	"testing"

	"wpptrace/query/querytest"
	"wpptrace/query/values"
)

// TestEachTaken: a variable has a value where a place of it says so, each time that it changes.
func TestEachTaken(t *testing.T) {
	s := querytest.Variables()
	for name, want := range map[string]string{
		"clip.x":          "1: 7, 2: 3",
		"five":            "0: 5",
		"clip.lost":       "1: -, 2: -",
		"none":            "",
		"clip.pair.count": "1: ffff, 2: ffff",
		"pair.flag":       "1: 5, 2: 5",
		"clip.pair.next":  "1: -, 2: -", // behind the end of what is given
	} {
		list, err := values.VariablesNamed(s, name)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		err = values.EachTaken(s, list, nil, func(x *values.Taken) error {
			value := fmt.Sprintf("%x", x.Value)
			if x.Known == 0 {
				value = "-"
			}
			got = append(got, fmt.Sprintf("%d: %s", x.Instance, value))
			return nil
		})
		if text := strings.Join(got, ", "); err != nil || text != want {
			t.Errorf("%s: got %s, %v, want %s", name, text, err, want)
		}
	}
}

// TestVariablesNamed: what is behind a name is of the type that debug information has, or an error
// says what there is.
func TestVariablesNamed(t *testing.T) {
	s := querytest.Variables()
	for name, want := range map[string]string{
		"pair":                 "pair.count, pair.flag, pair.next",
		"clip.pair.next->flag": "pair.next->flag",
		"*clip.lost":           "lost->count, lost->flag, lost->next",
		"lost[2].count":        "lost[2].count",
		"lost->next->next":     "lost->next->next",
		"lost.next":            "lost->next",
		"nobody":               "no traced routine has",
		"clip.nobody":          "but lost, none, pair, x",
		"nowhere.x":            "nowhere",
		"pair.nobody":          "it has count, flag, next",
		"x.y":                  "no field y",
		"*x":                   "x is no pointer",
		"pair[1]":              "no element 1",
		"lost[":                "wants a number",
		"::five":               "five",
		"::x":                  "but x",
	} {
		list, err := values.VariablesNamed(s, name)
		var got []string
		for _, a := range list {
			got = append(got, a.String())
		}
		text := strings.Join(got, ", ")
		if err != nil {
			text = err.Error()
		}
		if text != want && (err == nil || !strings.Contains(text, want)) {
			t.Errorf("%s: got %s, want %s", name, text, want)
		}
	}
}

// FuzzVariablesNamed: whatever is asked for, there are some numbers, or one error.
func FuzzVariablesNamed(f *testing.F) {
	s := querytest.Variables()
	for _, text := range []string{"*clip.lost->next[3].count", "pair.flag", "[[->.*"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := values.VariablesNamed(s, text)
		if (len(list) == 0) != (err != nil) || err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %d, %v", text, len(list), err)
		}
	})
}
