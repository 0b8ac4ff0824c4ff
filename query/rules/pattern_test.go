package rules

import (
	"testing"

	"wpptrace/query/querytest"
)

// A name as a whole, as tables print it, is found without quotes within quotes; one without the
// arguments of its template gets an error that says which there are.
func TestNamesOfTemplates(t *testing.T) {
	s := querytest.Letters("ab")
	s.Routines[0].Name, s.Routines[1].Name = "std::vector<std::string, "+
		"std::allocator<std::string> >::push_back", "accumulate<int, long>"
	for _, name := range []string{"std::vector<...>::push_back#0",
		"std::vector<std::string, std::allocator<...> >::push_back", s.Routines[0].Name} {
		a := newPathNames(s)
		p, err := sequencePattern(a, name, 0)
		if err != nil || len(p.of) != 1 || p.of[0].atom == anyPath {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	_, err := sequencePattern(newPathNames(s), "accumulate", 0)
	if want := "no routine accumulate, but accumulate<int, long>"; err == nil ||
		err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
}
