package names

import (
	"testing"
	"unicode/utf8"
)

// What is short names what it was made of; of C++ names the arguments of templates go first.
func TestShortenName(t *testing.T) {
	const insert = "std::vector<std::__cxx11::basic_string<char, std::char_traits<char> >, " +
		"std::allocator<int> >::_M_realloc_insert<std::string const&>"
	for _, c := range []struct {
		name  string
		width int
		want  string
	}{
		{"main", 10, "main"},
		{"longest_match_of_all", 12, "longe..._all"},
		{insert, 200, insert},
		{insert, 120, "std::vector<std::__cxx11::basic_string<...>, std::allocator<int> " +
			">::_M_realloc_insert<std::string const&>"},
		{insert, 60, "std::vector<...>::_M_realloc_insert<...>"},
		{insert, 20, "std::vect...ert<...>"},
		{"a<int>::operator<<<char const*>(x)", 30, "a<int>::operator<<<...>(x)"},
		{"pair<a, bcdefgh>::operator-><long long>", 30, "pair<...>::operator-><...>"},
		{"less<lots of it> >>", 12, "less<...> >>"},
		{"Matrix<(bool)((4)<(8)), int>::multiply_accumulate", 24, "Matrix<(boo..." + "accumulate"},
	} {
		if got := Shorten(c.name, c.width); got != c.want ||
			utf8.RuneCountInString(got) > c.width || !Matches(got, c.name) {
			t.Errorf("%s in %d columns: %q, want %q", c.name, c.width, got, c.want)
		}
	}
}

// FuzzShortenName: whatever a name is, what is short names it.
func FuzzShortenName(f *testing.F) {
	f.Add("std::vector<int, std::allocator<int> >::operator<< <char>", 20)
	f.Add("f<((1)<(2)), int>::g", 12)
	f.Fuzz(func(t *testing.T, name string, width int) {
		name = Printable(name)
		if short := Shorten(name, width); !Matches(short, name) {
			t.Errorf("%q in %d columns: %q does not name it", name, width, short)
		}
	})
}
