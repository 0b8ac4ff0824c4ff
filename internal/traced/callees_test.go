package traced_test

import (
	"testing"

	"wpptrace/internal/testenv"
	"wpptrace/internal/traced"
	"wpptrace/loader/cfg"
	"wpptrace/loader/cfg/recovery"
	"wpptrace/loader/image"
)

// TestWithCallees: routines with samples are traced with those that they call, the calls of the
// most sampled first, as long as there is room; small ones, and those that data points to, have
// half as much again.
func TestWithCallees(t *testing.T) {
	path := testenv.CompileC(t, `
int x;
__attribute__((noinline)) void leaf(void) { x++; }
__attribute__((noinline)) void middle(void) { leaf(); x += 2; }
__attribute__((noinline)) void other(void) { x *= 3; }
#define ONE(n) if (x == n) x += leafs[n];
#define TEN(n) ONE(n) ONE(n+1) ONE(n+2) ONE(n+3) ONE(n+4) ONE(n+5) ONE(n+6) ONE(n+7) ONE(n+8) ONE(n+9)
volatile int leafs[40];
__attribute__((noinline)) void large(void) { TEN(0) TEN(10) TEN(20) TEN(30) }
__attribute__((noinline)) void busy(void) { middle(); x--; }
__attribute__((noinline)) void calm(void) { other(); large(); x--; }
__attribute__((noinline)) void unseen(void) { busy(); calm(); x--; }
static void callback(void) { x += 5; }
void (*const table[])(void) = { callback };
int main(void) { unseen(); return x; }
`, "-O1", "-fno-optimize-sibling-calls")
	im, err := image.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	program, err := recovery.Recover(im)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*cfg.Routine{}
	for _, r := range program.Routines {
		byName[r.Name] = r
	}
	samples := map[*cfg.Routine]uint64{byName["busy"]: 10, byName["calm"]: 1}
	size := func(names ...string) (n int) {
		for _, name := range names {
			n += len(byName[name].Blocks)
		}
		return n
	}
	const all = 1000
	for _, c := range []struct {
		name      string
		most      traced.Bounds
		want, not []string
		sampled   int
	}{
		{"nothing but the one with the most samples", traced.Bounds{}, []string{"busy"},
			[]string{"calm", "middle", "callback"}, 1},
		{"no room for the others", traced.Bounds{Blocks: size("busy"), Hot: all}, []string{"busy"},
			[]string{"large", "calm"}, 1},
		{"hardly any callees", traced.Bounds{Blocks: size("busy", "calm"), Hot: all},
			[]string{"busy", "calm", "callback"}, []string{"large", "middle"}, 2},
		{"one callee", traced.Bounds{Blocks: size("busy", "calm", "middle"), Hot: all},
			[]string{"busy", "calm", "callback", "middle"}, []string{"large"}, 2},
		{"all that is reached", traced.Bounds{Blocks: all, Hot: all},
			[]string{"busy", "calm", "middle", "other", "large", "leaf", "callback"},
			[]string{"unseen"}, 2},
		{"few that are hot", traced.Bounds{Blocks: all, Hot: 1},
			[]string{"busy", "middle", "leaf", "callback"}, []string{"calm", "large"}, 1},
		{"none that is hot besides", traced.Bounds{Blocks: all, Hot: 0.1},
			[]string{"busy"}, []string{"calm", "large", "middle"}, 1},
	} {
		got := traced.WithCallees(program, samples, c.most)
		for _, name := range c.want {
			if !got.Routines[byName[name]] {
				t.Errorf("%s: without %s", c.name, name)
			}
		}
		for _, name := range c.not {
			if got.Routines[byName[name]] {
				t.Errorf("%s: with %s", c.name, name)
			}
		}
		if got.Sampled != c.sampled {
			t.Errorf("%s: %d routines with samples, not %d", c.name, got.Sampled, c.sampled)
		}
	}
}
