package recovery_test

import (
	"debug/elf"
	"encoding/binary"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"wpptrace/loader/cfg"
)

// TestTables compares the targets of all tables with what the compiler's relocations say: none is
// missed, none invented.
func TestTables(t *testing.T) {
	for _, flags := range switchFlags {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			t.Parallel()
			path := compileFile(t, "switches/all.c", append(flags, "-Wl,--emit-relocs")...)
			p := recoverFile(t, path)
			truth := relocatedTargets(t, path, p)
			found := map[*cfg.Routine]map[uint64]bool{}
			tables := 0
			for _, r := range p.Routines {
				if r.LeftOut != "" && r.LeftOut != "no unwind information" {
					t.Errorf("%s is left out: %s", r.Name, r.LeftOut)
				}
				for b := range r.Blocks {
					if r.Blocks[b].End == cfg.Table {
						tables++
						addTargets(found, r, b)
					}
				}
			}
			if tables < 18 {
				t.Errorf("%d tables, want 18 or more", tables)
			}
			for r, targets := range found {
				if r.Symbol == "relative" {
					// differences of labels have no relocations, and look like any numbers
					if distances := wordsOf(t, path, "labels", 6); !haveDistances(targets,
						distances) {
						t.Errorf("relative has targets %x, want some with distances %x",
							slices.Sorted(maps.Keys(targets)), distances)
					}
				} else if !maps.Equal(targets, truth[r]) {
					t.Errorf("%s: targets %x, want %x", r.Name, slices.Sorted(maps.Keys(targets)),
						slices.Sorted(maps.Keys(truth[r])))
				}
			}
			for r := range truth {
				if found[r] == nil {
					t.Errorf("%s: no table found", r.Name)
				}
			}
		})
	}
}

// openSymbols opens a file for as long as the test runs, and returns its symbols, too.
func openSymbols(t *testing.T, path string) (*elf.File, []elf.Symbol) {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	return f, symbols
}

// wordsOf returns what the file has in the array of n words of a name, whatever number the compiler
// has put behind that.
func wordsOf(t *testing.T, path, name string, n int) []int32 {
	t.Helper()
	f, symbols := openSymbols(t, path)
	for _, s := range symbols {
		if strings.HasPrefix(s.Name, name) && s.Size == uint64(4*n) {
			in, words := f.Sections[s.Section], make([]int32, n)
			if err := binary.Read(io.NewSectionReader(in, int64(s.Value-in.Addr), int64(s.Size)),
				f.ByteOrder, words); err != nil {
				t.Fatal(err)
			}
			return words
		}
	}
	t.Fatalf("%s has no array %s of %d words", path, name, n)
	return nil
}

// haveDistances says whether some of the targets are at the distances from one of them.
func haveDistances(targets map[uint64]bool, distances []int32) bool {
	for from := range targets {
		if !slices.ContainsFunc(distances,
			func(d int32) bool { return !targets[from+uint64(int64(d))] }) {
			return true
		}
	}
	return false
}

func addTargets(found map[*cfg.Routine]map[uint64]bool, r *cfg.Routine, b int) {
	if found[r] == nil {
		found[r] = map[uint64]bool{}
	}
	for _, to := range r.Blocks[b].Succ {
		found[r][r.Blocks[to].Lo] = true
	}
}

// relocatedTargets returns the addresses within routines that the linker wrote into data, by
// routine. A table's entry holds an address, or one relative to the table; where a table begins,
// the relocations of the code say.
func relocatedTargets(t *testing.T, path string, p *cfg.Program) map[*cfg.Routine]map[uint64]bool {
	t.Helper()
	f, symbols := openSymbols(t, path)
	var starts []uint64 // addresses that the code refers to
	type entry struct{ at, to uint64 }
	var relative []entry
	out := map[*cfg.Routine]map[uint64]bool{}
	add := func(to uint64) {
		if r := p.Containing(to); r != nil && r.Addr != to {
			if out[r] == nil {
				out[r] = map[uint64]bool{}
			}
			out[r][to] = true
		}
	}
	for _, s := range f.Sections {
		if s.Type != elf.SHT_RELA || s.Flags&elf.SHF_ALLOC != 0 {
			continue
		}
		target := f.Sections[s.Info]
		data, err := s.Data()
		if err != nil {
			t.Fatal(err)
		}
		for ; len(data) >= 24; data = data[24:] {
			at := binary.LittleEndian.Uint64(data)
			info := binary.LittleEndian.Uint64(data[8:])
			to := binary.LittleEndian.Uint64(data[16:])
			if n := info >> 32; n > 0 {
				to += symbols[n-1].Value
			}
			kind := elf.R_X86_64(uint32(info))
			switch {
			case target.Flags&elf.SHF_EXECINSTR != 0 && kind == elf.R_X86_64_PC32:
				starts = append(starts, to+4)
			case strings.HasPrefix(target.Name, ".eh_frame"), strings.HasPrefix(target.Name,
				".debug"), target.Flags&elf.SHF_ALLOC == 0:
			case kind == elf.R_X86_64_64:
				add(to)
			case kind == elf.R_X86_64_PC32 && target.Name == ".rodata":
				relative = append(relative, entry{at, to})
			}
		}
	}
	slices.Sort(starts)
	for _, e := range relative {
		i, found := slices.BinarySearch(starts, e.at)
		if !found {
			i--
		}
		add(e.to - (e.at - starts[i]))
	}
	return out
}

// TestTailCalls checks that jumps through pointers leave the routine.
func TestTailCalls(t *testing.T) {
	p := recoverFile(t, compileFile(t, "switches/all.c", "-O2"))
	for _, symbol := range []string{"throughTable", "throughPointer"} {
		if n := ends(routine(t, p, symbol)); n[cfg.TailInd] != 1 || n[cfg.Table] != 0 {
			t.Errorf("%s: blocks end by %v, want one indirect tail jump", symbol, n)
		}
	}
}

const tableAcrossPad = `
__asm__(".globl across\n.type across,@function\nacross: .cfi_startproc\n"
	".cfi_lsda 0x1b, across_lsda\n"
	"push %r12\n.cfi_adjust_cfa_offset 8\nlea 5f(%rip), %r12\n"
	"1: call leaf\n2: cmp $2, %edi\nja 4f\nmov %edi, %eax\nmovslq (%r12,%rax,4), %rax\n"
	"add %r12, %rax\njmp *%rax\n"
	"across_pad: call leaf\njmp 1b\n"
	"6: dec %edi\njmp 1b\n"
	"4: pop %r12\n.cfi_adjust_cfa_offset -8\nret\n.cfi_endproc\n.size across, .-across\n"
	".section .rodata\n5: .long 6b-5b, 4b-5b, 1b-5b\n"
	".section .gcc_except_table,\"a\"\nacross_lsda: .byte 0xff, 0xff, 1\n.uleb128 8f-7f\n"
	"7: .uleb128 1b-across, 2b-1b, across_pad-across, 0\n8:\n.text\n");
void across(void);
__attribute__((noinline)) void leaf(void) { __asm__ volatile(""); }
int main(void) { across(); return 0; }
`

// The base of a table that is kept in a register across a landing pad was not found.
func TestTableAcrossLandingPad(t *testing.T) {
	p := recoverFile(t, compile(t, tableAcrossPad, "-O1"))
	for _, r := range p.Routines {
		if r.Symbol != "across" {
			continue
		}
		if r.LeftOut != "" {
			t.Fatalf("left out: %s", r.LeftOut)
		}
		for b := range r.Blocks {
			if r.Blocks[b].End == cfg.Table && len(r.Blocks[b].Table.Targets) != 3 {
				t.Errorf("%d targets, want 3", len(r.Blocks[b].Table.Targets))
			}
		}
		return
	}
	t.Error("no routine across")
}

// A jump behind the frame through a pointer that may be the routine's own address is a tail call,
// as coroutines make it that hand over to one another.
func TestTailToItself(t *testing.T) {
	const source = `
		struct s { long (*f)(struct s *, long); struct s *n; };
		__attribute__((noinline)) long walk(struct s *p, long a) {
			long (*g)(struct s *, long); if (a > 40) return a;
			if (p->f) g = p->f; else { g = walk; puts("own"); }
			return g(p->n, a + 2); }
		int main(int c, char **v) { struct s s = { 0, &s }; return walk(&s, c); }`
	for _, flags := range [][]string{{"-O2"}, {"-Os"}, {"-O2", "-fno-pie", "-no-pie"}} {
		r := routine(t, recoverFile(t, compile(t, "#include <stdio.h>\n"+source, flags...)), "walk")
		if n := ends(r); r.LeftOut != "" || n[cfg.TailInd] != 1 {
			t.Errorf("%q: blocks end in %v, want one jump through a pointer; left out: %q", flags,
				n, r.LeftOut)
		}
	}
}

// What lies behind a table may look like an entry that leads to the jump itself, where it would
// stay for ever.
func TestTableBeforeWhatLeadsToItsJump(t *testing.T) {
	source := beginEnd + `
__asm__(BEGIN(f) "lea of_f(%rip),%rdx\nmovzbl (%rdi),%eax\nmovslq (%rdx,%rax,4),%rax\n"
	"add %rdx,%rax\n3: notrack jmp *%rax\n1: mov $1,%eax\nret\n2: mov $2,%eax\nret\n" END(f)
	".section .rodata\n.p2align 2\nof_f: .long 1b-of_f, 2b-of_f\nof_g: .long 3b-of_f, 1b-of_f\n"
	".text\n"
	BEGIN(g) "lea of_g(%rip),%rax\nret\n" END(g));
int f(char *), *g(void);
int main(int c, char **v) { return f(*v) + *g(); }`
	r := routine(t, recoverFile(t, compile(t, source, "-O1")), "f")
	if n := fewest(r); r.LeftOut != "" || n != 2 {
		t.Errorf("a jump of %d ways, want 2; left out: %q", n, r.LeftOut)
	}
}

// A switch in a loop of which the entry is loaded before: it is the same in each round, unless what
// it comes of changes.
func TestEntryLoadedBeforeTheLoop(t *testing.T) {
	source := func(jumps, changes string) string {
		return beginEnd + `
__asm__(BEGIN(f) "and $3,%esi\nlea of_f(%rip),%rdx\nmovslq (%rdx,%rsi,4),%r10\nlea (%rdx,%r10),%r9\nmov %r9,(%r11)\nlea 2f(%rip),%rcx\n` + jumps + `\n"
	"3: add $1,%edi\n` + changes + `\ncmp $3,%edi\njl 1b\nret\n4: call m\nadd $2,%edi\ncmp $3,%edi\njl 2b\nret\n5: xor $5,%edi\njmp 1b\n" END(f)
	BEGIN(m) "xor %esi,%esi\nret\n" END(m) BEGIN(n) "xor %r10d,%r10d\nret\n" END(n)
	".section .rodata\n.p2align 2\nof_f: .long 3b-of_f, 4b-of_f, 5b-of_f, 3b-of_f\n.text\n");
int f(int, int); int main(int c, char **v) { return f(c, c); }`
	}
	const added, through, loaded = `1: lea (%rdx,%r10),%rax\n2: jmp *%rax`,
		`1: jmp *%rcx\n2: jmp *%r9`, `1: mov (%r11),%rax\n2: jmp *%rax`
	for _, test := range []struct {
		jumps, changes string
		traced         bool
	}{
		{added, "", true}, {added, `mov %r10,%r8`, true}, {added, `call m`, true},
		{added, `add $4,%r10`, false}, {added, `call n`, false}, {added, `mov %rdi,%rdx`, false},
		{through, `mov %r8,%r9`, false}, {loaded, `mov %r8,(%r11)`, false}, {loaded, ``, false},
	} {
		r := routine(t, recoverFile(t, compile(t, source(test.jumps, test.changes), "-O1")), "f")
		isUnsure := strings.HasPrefix(r.LeftOut, "unresolved indirect jump")
		if test.traced && (r.LeftOut != "" || fewest(r) != 3) || !test.traced && !isUnsure {
			t.Errorf("%s, in the loop %q: left out: %q, want %v; a jump of %d ways, want 3",
				test.jumps, test.changes, r.LeftOut, !test.traced, fewest(r))
		}
	}
}

// A case that lies amid another routine's code, as tools leave it that rewrite programs: what is
// behind it was taken for no part of the table, and the other routine for one that runs from its
// beginning alone.
func TestCaseInAnotherRoutine(t *testing.T) {
	for _, cases := range []string{"4b-tab, 1b-tab, 2b-tab, 3b-tab",
		"1b-tab, 4b-tab, 2b-tab, 3b-tab", "1b-tab, 2b-tab, 3b-tab, 4b-tab"} {
		p := recoverFile(t, compile(t, beginEnd+`
__asm__(BEGIN(a) "cmp $3,%edi\nja 3f\nlea tab(%rip),%rdx\nmov %edi,%eax\n"
	"movslq (%rdx,%rax,4),%rax\nadd %rdx,%rax\njmp *%rax\n"
	"1: mov $11,%eax\nret\n2: mov $12,%eax\nret\n3: mov $13,%eax\nret\n" END(a)
	BEGIN(b) "mov %edi,%eax\n4: test $1,%edi\njz 5f\nadd $1,%eax\n5: ret\n" END(b)
	".section .rodata\n.p2align 2\ntab: .long `+cases+`\n.text\n");
int a(int), b(int); int main(int c, char **v) { return a(c) + b(c); }`, "-O1"))
		for symbol, want := range map[string]string{"a": "unresolved indirect jump",
			"b": "jumped to in its middle"} {
			if r := routine(t, p, symbol); !strings.HasPrefix(r.LeftOut, want) {
				t.Errorf("%s: %s: left out: %q, want %q", cases, symbol, r.LeftOut, want)
			}
		}
	}
}

// A bound that lets in one entry more than a table has is no reason to look for a case in what is
// the next table's: by the first one's anchor that may lead amid any routine.
func TestBoundReachesTheNextTable(t *testing.T) {
	p := recoverFile(t, compile(t, beginEnd+`
__asm__(BEGIN(a) "cmp $3,%edi\nja 3f\nlea tab(%rip),%rdx\nmov %edi,%eax\n"
	"movslq (%rdx,%rax,4),%rax\nadd %rdx,%rax\njmp *%rax\n"
	"1: mov $11,%eax\nret\n2: mov $12,%eax\nret\n3: mov $13,%eax\nret\n" END(a)
	BEGIN(b) "mov %edi,%eax\n.rept 16\nnop\n.endr\nret\n" END(b)
	BEGIN(c) "jmp 5f\n4: mov $14,%eax\nret\n5: cmp $1,%edi\nja 4b\nlea next(%rip),%rdx\n"
		"mov %edi,%eax\nmovslq (%rdx,%rax,4),%rax\nadd %rdx,%rax\njmp *%rax\n" END(c)
	".section .rodata\n.p2align 2\ntab: .long 1b-tab, 2b-tab, 3b-tab\n"
	"next: .long 4b-next, 4b-next\n.text\n");
int a(int), b(int), c(int); int main(int n, char **v) { return a(n) + b(n) + c(n); }`, "-O1"))
	for _, symbol := range []string{"a", "b", "c"} {
		if r := routine(t, p, symbol); r.LeftOut != "" {
			t.Errorf("%s is left out: %s", symbol, r.LeftOut)
		}
	}
}

// Tools that rewrite a program leave its old code there, whose tables are the new code's.
func TestTableOfNewCode(t *testing.T) {
	const jump = `cmp $3,%edi\nja 3f\nlea tab(%rip),%rdx\nmov %edi,%eax\nmovslq (%rdx,%rax,4),%rax\nadd %rdx,%rax\njmp *%rax\n`
	p := recoverFile(t, compile(t, beginEnd+`
__asm__(BEGIN(a) "`+jump+`mov $11,%eax\nret\nmov $12,%eax\nret\n3: mov $13,%eax\nret\n" END(a)
	BEGIN(b) "`+jump+`1: mov $11,%eax\nret\n2: mov $12,%eax\nret\n3: mov $13,%eax\nret\n" END(b)
	".section .rodata\n.p2align 2\ntab: .long 1b-tab, 2b-tab, 1b-tab, 2b-tab\n.text\n");
int a(int), b(int); int main(int c, char **v) { return c > 9 ? a(c) : b(c); }`, "-O1"))
	for symbol, want := range map[string]string{"a": "unresolved indirect jump", "b": ""} {
		if r := routine(t, p, symbol); !strings.HasPrefix(r.LeftOut, want) ||
			want == "" && r.LeftOut != "" {
			t.Errorf("%s: left out: %q, want %q", symbol, r.LeftOut, want)
		}
	}
}
