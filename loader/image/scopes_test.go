package image

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// scopedSource has routines that no other unit can call, in scopes of all kinds; each is inlined
// into user.
const scopedSource = `
static volatile int sink;
#define BODY if (a % 3) sink += 2; else sink -= 1; return a
#define IN inline __attribute__((always_inline))
namespace ns { static IN int both(int a) { BODY; } }
namespace {
IN int alone(int a) { BODY; }
struct S { IN int m(int a) { BODY; } struct In { IN int h(int a); }; };
template <typename T> struct Q { T value; IN int g(int a); };
template <typename T> IN int Q<T>::g(int a) { BODY; }
IN int S::In::h(int a) { BODY; }
}
namespace ns { namespace { union U { int x; static IN int of(int a) { BODY; } }; } }
namespace c { extern "C" { IN int plain(int a) { BODY; } } }
static IN int global(int a) { BODY; }
__attribute__((noinline)) int user(int n)
{
	struct Local { IN int k(int a) { BODY; } };
	S s; S::In in; Q<int> q; Local l;
	return ns::both(n) + alone(n) + s.m(n) + in.h(n) + q.g(n) + ns::U::of(n) + c::plain(n) +
		global(n) + l.k(n);
}
int main() { return user(3) == 0; }
`

// inlinedNames are the names of all that is inlined in a program, in order.
func inlinedNames(lines *Lines) []string {
	met := map[string]bool{}
	lines.Copies(func(name string) bool { met[name] = true; return false })
	return slices.Sorted(maps.Keys(met))
}

// TestInlinedNamesAreQualified: what has no linkage name is called as its symbol is, with the
// scopes that it is in.
func TestInlinedNamesAreQualified(t *testing.T) {
	want := []string{"(anonymous namespace)::Q<int>::g", "(anonymous namespace)::S::In::h",
		"(anonymous namespace)::S::m", "(anonymous namespace)::alone", "global",
		"ns::(anonymous namespace)::U::of", "ns::both", "plain", "user(int)::Local::k"}
	for _, flags := range []string{"-g -O2", "-g -O3 -gdwarf-4", "-g -O1 -gdwarf-3"} {
		t.Run(flags, func(t *testing.T) {
			t.Parallel()
			lines, err := mustOpen(t, compile(t, "scoped.cc", scopedSource,
				strings.Fields(flags)...)).Lines()
			if err != nil {
				t.Fatal(err)
			}
			if got := inlinedNames(lines); !slices.Equal(got, want) || lines.Trouble() != nil {
				t.Errorf("%q, want %q; %v", got, want, lines.Trouble())
			}
		})
	}
}

// TestScopesAreBounded: where a file has more scopes than any, or they are in too many others, a
// name within them is not known, and it is said why.
func TestScopesAreBounded(t *testing.T) {
	deep := `static volatile int sink;
` + strings.Repeat("namespace n { ", 2*maxScopeDepth) + `
static inline __attribute__((always_inline)) int f(int a) { return sink += a; }
__attribute__((noinline)) int g(int a) { return f(a) + f(2); }
` + strings.Repeat("}", 2*maxScopeDepth) + `
int main() { return ` + strings.Repeat("n::", 2*maxScopeDepth) + `g(3); }
`
	path := compile(t, "deep.cc", deep, "-g", "-O1")
	for _, c := range []struct {
		limit func(d *debugData)
		want  string
	}{
		{func(*debugData) {}, fmt.Sprintf("more than %d scopes in each other", maxScopeDepth)},
		{func(d *debugData) { d.left.scopes = 1 },
			fmt.Sprintf("more than %d scopes of names", maxScopes)},
	} {
		lines, err := mustOpen(t, path).Lines()
		if err != nil {
			t.Fatal(err)
		}
		c.limit(lines.inlined.debug)
		if got := inlinedNames(lines); len(got) > 0 && !slices.Equal(got, []string{""}) {
			t.Errorf("%s: %q", c.want, got)
		}
		if err := lines.Trouble(); err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}
