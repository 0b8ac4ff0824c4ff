package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// TestPage: docs/json.md is what the types are now; make generate writes it.
func TestPage(t *testing.T) {
	var got bytes.Buffer
	if err := run(&got, []string{"../.."}); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("../../docs/json.md")
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Error("docs/json.md is not what the types are: make generate, or go generate " +
			"./internal/jsondoc")
	}
	for _, member := range []string{"- `hits` (integer or null): ",
		"- `also_inlined` (array of [Copies](#copies), *optional*): ",
		"- `position` (integer or null): "} {
		if !strings.Contains(got.String(), member) {
			t.Errorf("no %q", member)
		}
	}
}

// A member without a comment, a type that is none and a directory too many are errors.
func TestErrors(t *testing.T) {
	if err := run(&bytes.Buffer{}, nil); err == nil {
		t.Error("no directory is no error")
	}
	list := types{}
	if err := list.read("testdata"); err != nil {
		t.Fatal(err)
	}
	for typeName, want := range map[string]string{
		"p.Bare":   "member n of p.Bare has no comment that says what it is",
		"p.Number": "type p.Number is no struct", "p.None": "there is no type p.None",
	} {
		if _, err := list.members(typeName); err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %s", typeName, err, want)
		}
	}
	members, err := list.members("p.Whole")
	if err != nil || len(members) != 2 || members[1].kind != "array of Bare" ||
		members[1].refers != "p.Bare" {
		t.Errorf("%+v, %v", members, err)
	}
}
