package names

import (
	"slices"
	"testing"
)

// Names that are overloaded, tagged, of templates, of clones or misspelt have candidates.
func TestSimilar(t *testing.T) {
	known := []string{
		"main", "Parser::string[abi:cxx11]", "Parser::number", "Visitor::operator()@1200",
		"Visitor::operator()@1300",
		"accumulate<int, long>", "accumulate<float, double>", "longest_match.constprop.0",
		"std::vector<int>::push_back",
		"operator<<", "f", "(anonymous namespace)::g",
	}
	for name, want := range map[string][]string{
		"Parser::string()":                  {"Parser::string[abi:cxx11]"},
		"Parser::string[abi:cxx11]() const": {"Parser::string[abi:cxx11]"},
		"string":                            {"Parser::string[abi:cxx11]"},
		"Visitor::operator()(int)": {"Visitor::operator()@1200",
			"Visitor::operator()@1300"},
		"operator()(int)": {"Visitor::operator()@1200",
			"Visitor::operator()@1300"},
		"accumulate": {"accumulate<int, long>",
			"accumulate<float, double>"},
		"accumulate<char>(char)": {"accumulate<int, long>",
			"accumulate<float, double>"},
		"longest_match":              {"longest_match.constprop.0"},
		"longest_mtach":              {"longest_match.constprop.0"},
		"mian":                       {"main"},
		"Parser::nubmer":             {"Parser::number"},
		"std::vector<int>::pushback": {"std::vector<int>::push_back"},
		"main(int, char**)":          {"main"},
		"int accumulate<int, long>(int)": {"accumulate<int, long>",
			"accumulate<float, double>"},
		"void (anonymous namespace)::g(int)": {"(anonymous namespace)::g"},
		"void* operator<<(a)":                nil,
		"h":                                  nil,
		"":                                   nil,
		"()":                                 nil,
		"entirely_different":                 nil,
	} {
		if got := Similar(name, known, 3); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestEditDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"abc", "ab", 1}, {"abc", "xbc", 1},
		{"ca", "abc", 3}, {"abcd", "dcba", 3}, {"", "abcde", 4}, {"kitten", "sitting", 3}} {
		if got := editDistance(tt.a, tt.b, 3); got != min(tt.want, 4) {
			t.Errorf("%q and %q: %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}

// FuzzSimilar: whatever names are, those that are offered are known.
func FuzzSimilar(f *testing.F) {
	f.Add("operator()(int)", "A::operator()@10")
	f.Add("f<((1)<(2)), int>::g", "[abi:x]")
	f.Fuzz(func(t *testing.T, name, known string) {
		for _, s := range Similar(name, []string{known, "main"}, 3) {
			if s != known && s != "main" {
				t.Errorf("%q is offered for %q", s, name)
			}
		}
	})
}
