package traced

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"wpptrace/internal/remedy"
	"wpptrace/internal/testenv"
	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
)

// An expression that selects nothing has the names that may be meant; one whose routines are
// inlined elsewhere has the routines where they are.
func TestSelectionOfWhatIsMisspeltOrInlined(t *testing.T) {
	const code = `
static inline __attribute__((always_inline)) int tiny(int x) { return x % 3 ? x * 2 + 1 : x - 7; }
static inline __attribute__((always_inline)) int both(int x) { return x & 4 ? x * 3 : x + 5; }
__attribute__((noinline)) int calls(int x) { return tiny(x) + both(x); }
int (*volatile pointer)(int) = both;
int main(int c, char **v) { return calls(c) + pointer(c) == 0; }
`
	f, err := os.Open(testenv.CompileC(t, code, "-g", "-O1"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	load := func(only string) (*Program, error) {
		return Load(f, "prog", Selection{Only: []*regexp.Regexp{regexp.MustCompile(only)}})
	}
	for only, want := range map[string]string{
		"^mian$":        " routines, but there is main",
		`^calls\(int\)`: " routines, but there is calls",
		"tiny":          " routines, but tiny, inlined into calls",
		"^t.n":          " routines, but tiny, inlined into calls",
		"nothing_alike": " routines",
	} {
		kind := remedy.ListAll
		if strings.Contains(want, "inlined") {
			kind = remedy.SelectInliner
		}
		_, err := load(only)
		if marked := (*remedy.Error)(nil); !errors.As(err, &marked) || marked.Kind != kind ||
			!strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", only, err, want)
		}
	}
	both := []*regexp.Regexp{regexp.MustCompile("^both$")}
	p, err := load("^both$")
	if err != nil {
		t.Fatal(err)
	}
	if into := p.InlinedElsewhere(both, 1<<20); !slices.Equal(into, []string{"calls"}) {
		t.Errorf("both is inlined into %q", into)
	}
	if into := p.InlinedElsewhere(both, 1); into != nil {
		t.Errorf("%q of more debug information than is wanted", into)
	}
	if p, err = load("both|calls"); err != nil || p.InlinedElsewhere(both, 1<<20) != nil {
		t.Errorf("what is selected is elsewhere: %v", err)
	}
}

// Where most routines have no symbol, as in a program that is stripped, the error says how they are
// named there; elsewhere it does not.
func TestRoutineOfAStrippedProgram(t *testing.T) {
	named := &plan.Routine{Routine: &cfg.Routine{Name: "_init", Symbol: "_init"}}
	unnamed := &plan.Routine{Routine: &cfg.Routine{Name: "fn_3ee0", Addr: 0x3ee0}}
	for _, c := range []struct {
		routines []*plan.Routine
		want     string
	}{
		{[]*plan.Routine{named, unnamed, unnamed}, "it is stripped): name one by its entry's " +
			"address, as fn_3ee0 is"},
		{[]*plan.Routine{named, named, unnamed}, "no routine work"},
	} {
		_, err := (&Program{Plan: &plan.Plan{Routines: c.routines}}).Routine("work")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}
