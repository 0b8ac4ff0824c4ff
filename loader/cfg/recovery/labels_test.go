package recovery_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"wpptrace/loader/cfg"
)

// A jump to what a variable was given leads to one of these labels, or to any of the routine where
// a call may have changed it. A table that can be written may hold any label of the routine.
func TestLabels(t *testing.T) {
	builds := [][]string{
		{"-O0"}, {"-O1"}, {"-O2"}, {"-O3"}, {"-Os"}, {"-O2", "-fno-pie", "-no-pie"},
		{"-O1", "-fcf-protection=full"}, {"-O2", "-fno-omit-frame-pointer"},
	}
	covered := coverage{}
	for symbol, labels := range map[string]int{
		"variable": 3, "machine": 4, "changed": 2, "rewritten": 3,
	} {
		covered[symbol] = 0
		for _, flags := range builds {
			r := routine(t, recoverFile(t, compileFile(t, "labels/pointers.c", flags...)), symbol)
			// a compiler may make several jumps of one, some of which lead to one label
			ways := slices.Max(append(switchWays(r), 0))
			if r.LeftOut == "" && (ways != labels || ends(r)[cfg.TailInd] > 0) {
				t.Errorf("%s, %q: a jump to %d labels, not %d", symbol, flags, ways, labels)
			} else if r.LeftOut == "" {
				covered[symbol]++
			}
		}
	}
	covered.check(t, "pointers.golden")
}

// A jump through a pointer to a label was taken for one out of the routine, where a table with all
// labels was known. An element of it whose index is known is none.
func TestStoredLabels(t *testing.T) {
	builds := [][]string{
		{"-O2"}, {"-Os"}, {"-O2", "-fno-pie", "-no-pie"},
		{"-O3", "-fno-pie", "-no-pie", "-fcf-protection=full"},
	}
	covered := coverage{}
	for symbol, labels := range map[string]int{"threaded": 4, "resumed": 3} {
		covered[symbol] = checkWhole(t, "labels/stored.c", symbol, labels, builds)
	}
	for _, flags := range builds {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			p := recoverFile(t, compileFile(t, "labels/stored.c", flags...))
			r := routine(t, p, "switched")
			if n := ends(r)[cfg.TailInd]; r.LeftOut == "" && n == 0 {
				t.Error("switched: no indirect tail jump")
			} else if r.LeftOut == "" {
				covered["switched"]++
			}
			for symbol, want := range map[string]struct{ traced, tails bool }{ // in assembly
				"folded": {traced: true}, "given": {}, "ahead": {traced: true}, "elsewhere": {},
				"sends": {traced: true, tails: true},
			} {
				r := routine(t, p, symbol)
				got := ends(r)[cfg.TailInd]
				if (r.LeftOut == "") != want.traced || got > 0 != want.tails {
					t.Errorf("%s: left out: %q, %d indirect tail jumps, want %+v",
						symbol, r.LeftOut, got, want)
				}
			}
		})
	}
	covered.check(t, "stored.golden")
}

// What a jump's register holds where it leads is its target's address, and says nothing of a table
// that another register names.
func TestTableAmidCode(t *testing.T) {
	r := routine(t, recoverFile(t, compileFile(t, "labels/amid-code.c", "-fno-pie", "-no-pie")),
		"amid")
	if ways := switchWays(r); r.LeftOut != "" || len(ways) != 2 || ways[1] < 4 {
		t.Errorf("switches of %d ways, want two, one of them of four or more; left out: %q", ways,
			r.LeftOut)
	}
}

// A table of labels may go on where another seems to begin, which leads into a part to which
// nothing else does, whatever its name: linkers fold parts that are the same. It ends before one
// that leads into a part which jumps back into another routine.
func TestLabelsBeforeAnothersPart(t *testing.T) {
	for _, test := range []struct {
		part, leftOut  string
		back, stripped bool
	}{
		{part: "g.cold", leftOut: "unresolved indirect jump"},
		{part: "f.cold", leftOut: "unresolved indirect jump"},
		{part: "g.cold", stripped: true, leftOut: "unresolved indirect jump"},
		{part: "g.cold", back: true},
		{part: "g.cold", back: true, stripped: true},
	} {
		end := "call abort"
		if test.back {
			end = "jmp g_back"
		}
		path := compileFile(t, "labels/before-part.c", "-O1", `-DPART="`+test.part+`"`,
			`-DENDS="`+end+`"`)
		p := recoverFile(t, path)
		r := routine(t, p, "f")
		if test.stripped {
			if b, err := exec.Command("strip", path).CombinedOutput(); err != nil {
				t.Fatalf("strip: %v\n%s", err, b)
			}
			r = recoverFile(t, path).At(r.Addr)
		}
		if !strings.HasPrefix(r.LeftOut, test.leftOut) ||
			test.leftOut == "" && (r.LeftOut != "" || fewest(r) != 3) {
			t.Errorf("before %s, stripped %v, back %v: left out: %q, want %q; the jump has %d "+
				"targets", test.part, test.stripped, test.back, r.LeftOut, test.leftOut, fewest(r))
		}
	}
}

// What a table of which it is not known where it ends may lead to, or a jump of which nothing is
// known, is left out with the routine that has it, though its own routine jumps there, too.
func TestPartOfTwo(t *testing.T) {
	for _, table := range []string{"lea of_f(%rip),%rdx", "mov table(%rip),%rdx"} {
		path := compileFile(t, "labels/part-of-two.c", "-O1", `-DTABLE="`+table+`"`)
		named := recoverFile(t, path)
		if b, err := exec.Command("strip", path).CombinedOutput(); err != nil {
			t.Fatalf("strip: %v\n%s", err, b)
		}
		stripped := recoverFile(t, path)
		for symbol, leftOut := range map[string]string{"f": "unresolved indirect jump",
			"g": "jumped to in its middle"} {
			r := routine(t, named, symbol)
			if s := stripped.At(r.Addr); !strings.HasPrefix(r.LeftOut, leftOut) ||
				!strings.HasPrefix(s.LeftOut, leftOut) {
				t.Errorf("%s: %s: left out: %q, stripped: %q, want %q", table, symbol, r.LeftOut,
					s.LeftOut, leftOut)
			}
		}
	}
}

// Direct-threaded code jumps to labels that memory holds: to any that the routine has, if data
// names all of them or code does nothing but store one.
func TestThreadedCode(t *testing.T) {
	covered := coverage{}
	for _, name := range []string{ // files in testdata/threaded, which say why
		"of-a-table", "of-records", "of-a-table-and-one-stored", "stored", "of-distances",
		"of-distances-from-one-that-was-stored", "of-distances-in-place",
		"of-a-table-by-a-place-for-jumps-from-elsewhere",
	} {
		mayEnter := strings.HasSuffix(name, "jumps-from-elsewhere")
		covered[name] = 0
		for _, flags := range [][]string{
			{"-O0"}, {"-O1"}, {"-O2"}, {"-O2", "-fno-pie", "-no-pie"},
		} {
			r := routine(t, recoverFile(t, compileFile(t, "threaded/"+name+".c", flags...)), "f")
			switch n := fewest(r); {
			case r.LeftOut == "" && mayEnter:
				t.Errorf("labels %s, %q: code elsewhere may jump to them", name, flags)
			case r.LeftOut == "" && n < 4:
				t.Errorf("labels %s, %q: a jump of %d ways, want 4", name, flags, n)
			case r.LeftOut == "":
				covered[name]++
			}
		}
	}
	covered.check(t, "threaded.golden")
}

// A label may begin the cold part of its routine.
func TestLabelBeginsColdPart(t *testing.T) {
	covered := coverage{"f": 0, "parts": 0}
	for _, flags := range [][]string{{"-O1"}, {"-O2"}, {"-O2", "-fno-pie", "-no-pie"}} {
		r := routine(t, recoverFile(t, compileFile(t, "labels/cold.c", flags...)), "f")
		if n := fewest(r); r.LeftOut == "" && n != 5 {
			t.Errorf("%q: jumps of %d ways, want 5", flags, n)
		} else if r.LeftOut == "" {
			covered["f"]++
			if len(r.Ranges) == 2 {
				covered["parts"]++
			}
		}
	}
	covered.check(t, "cold.golden")
}

// A jump from within a frame goes to any label of its routine where it goes to a whole pointer that
// memory or a caller holds. What is made of one, or of a part of one, may be anything.
func TestJumpToWholePointer(t *testing.T) {
	for _, c := range []struct {
		jump string
		ways int // 0: the routine is left out
	}{
		{`mov (%rdi),%rax\njmp *%rax`, 3},
		{`jmp *(%rdi)`, 3},
		{`jmp *%rsi`, 3},
		{`mov (%rdi),%rax\ntest %rdx,%rdx\nje 5f\nmov %rsi,%rax\n5: jmp *%rax`, 3},
		{`mov (%rdi),%eax\njmp *%rax`, 0},
		{`mov (%rdi),%rax\nadd %rsi,%rax\njmp *%rax`, 0},
		{`mov (%rdi),%rax\nadd $8,%rax\njmp *%rax`, 0},
		{`mov (%rdi),%rax\nand $-4,%rax\njmp *%rax`, 0},
		{`mov (%rdi),%rax\ntest %rdx,%rdx\nje 5f\nmov %esi,%eax\n5: jmp *%rax`, 0},
	} {
		p := recoverFile(t, compile(t, beginEnd+`
__asm__(BEGIN(f) "push %rbx\n.cfi_adjust_cfa_offset 8\n`+c.jump+`\n"
	"1: inc %ecx\n2: inc %ecx\n3: inc %ecx\npop %rbx\n.cfi_adjust_cfa_offset -8\nret\n" END(f)
	".section .data.rel.ro,\"aw\"\n.p2align 3\nlabels: .quad 1b, 2b, 3b\n.text\n"
	BEGIN(names) "lea labels(%rip),%rax\nret\n" END(names));
int f(void *, void *, long); void *names(void);
int main(int n, char **v) { return f(names(), v, n); }`, "-O1"))
		r := routine(t, p, "f")
		if ways := fewest(r); (r.LeftOut == "") != (c.ways > 0) || ways != c.ways {
			t.Errorf("%s: a jump of %d ways, want %d; left out: %q", c.jump, ways, c.ways,
				r.LeftOut)
		}
	}
}
