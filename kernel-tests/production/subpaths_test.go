package main

import "testing"

func TestIsMostly(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"x#1;y#2;", "x#1;y#2;", true},
		{"x#1;", "x#1;y#2;y#2;y#2;", true},
		{"x#1;y#2;y#3;", "y#2;y#3;", false}, // two of three
		{"x#1;y#2;y#3;z#4;", "y#2;y#3;z#4;", true},
		{"ax#1;y#2;y#3;z#4;", "x#1;y#2;y#3;z#4;", false}, // another routine
		{"x#1;y#2;y#3;z#4;", "x#1;y#2;z#4;", false},
	} {
		if isMostly(c.a, c.b) != c.want || isMostly(c.b, c.a) != c.want {
			t.Errorf("%s, %s: not %v", c.a, c.b, c.want)
		}
	}
}
