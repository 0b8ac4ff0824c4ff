package query

import (
	"testing"
	"unicode/utf8"
)

// What is short names what it was made of; of C++ names the arguments of templates go first.
func TestShortenName(t *testing.T) {
	const insert = "std::vector<std::__cxx11::basic_string<char, std::char_traits<char> >, std::allocator<int> >::_M_realloc_insert<std::string const&>"
	for _, c := range []struct {
		name  string
		width int
		want  string
	}{
		{"main", 10, "main"},
		{"longest_match_of_all", 12, "longe..._all"},
		{insert, 200, insert},
		{insert, 120, "std::vector<std::__cxx11::basic_string<...>, std::allocator<int> >::_M_realloc_insert<std::string const&>"},
		{insert, 60, "std::vector<...>::_M_realloc_insert<...>"},
		{insert, 20, "std::vect...ert<...>"},
		{"a<int>::operator<<<char const*>(x)", 30, "a<int>::operator<<<...>(x)"},
		{"pair<a, bcdefgh>::operator-><long long>", 30, "pair<...>::operator-><...>"},
		{"less<lots of it> >>", 12, "less<...> >>"},
		{"Matrix<(bool)((4)<(8)), int>::multiply_accumulate", 24, "Matrix<(boo..." + "accumulate"},
	} {
		if got := shortenName(c.name, c.width); got != c.want || utf8.RuneCountInString(got) > c.width || !isShort(got, c.name) {
			t.Errorf("%s in %d columns: %q, want %q", c.name, c.width, got, c.want)
		}
	}
}

// A name as a whole, as tables print it, is found without quotes within quotes; one without the
// arguments of its template is told which there are.
func TestNamesOfTemplates(t *testing.T) {
	s := letters("ab")
	s.Routines[0].Name, s.Routines[1].Name = "std::vector<std::string, std::allocator<std::string> >::push_back", "accumulate<int, long>"
	for _, name := range []string{"std::vector<...>::push_back#0", "std::vector<std::string, std::allocator<...> >::push_back", s.Routines[0].Name} {
		a := newAtoms(s)
		p, err := sequencePattern(a, name, 0)
		if err != nil || len(p.of) != 1 || p.of[0].atom == anyPath {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	_, err := sequencePattern(newAtoms(s), "accumulate", 0)
	if want := "no routine accumulate, but accumulate<int, long>"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
}

// FuzzShortenName: whatever a name is, what is short names it.
func FuzzShortenName(f *testing.F) {
	f.Add("std::vector<int, std::allocator<int> >::operator<< <char>", 20)
	f.Add("f<((1)<(2)), int>::g", 12)
	f.Fuzz(func(t *testing.T, name string, width int) {
		name = printable(name)
		if short := shortenName(name, width); !isShort(short, name) {
			t.Errorf("%q in %d columns: %q does not name it", name, width, short)
		}
	})
}
