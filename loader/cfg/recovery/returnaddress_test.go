package recovery_test

import (
	"strings"
	"testing"

	"wpptrace/loader/cfg"
	"wpptrace/loader/cfg/sweep"
)

// A function that keeps its return address may return twice; one that changes or drops it does not
// return behind the call, where there need not be code: its callers are left out.
func TestReturnAddresses(t *testing.T) {
	for _, flags := range [][]string{{"-O1", "-fPIE", "-pie"}, {"-O1", "-fno-pie", "-no-pie"}} {
		p := recoverFile(t, compileFile(t, "returns/address.c", append(flags, "-w")...))
		for symbol, want := range map[string]struct{ twice, leftOut bool }{
			"saves_pushing":      {twice: true},
			"adds":               {leftOut: true},
			"jumps":              {leftOut: true},
			"stores":             {leftOut: true},
			"pushes":             {leftOut: true},
			"tails":              {leftOut: true},
			"drops":              {leftOut: true},
			"drops_without_rows": {leftOut: true},
			"drops_or_goes_on":   {leftOut: true},
			"drops_or_switches":  {leftOut: true},
			"switches_or_drops":  {leftOut: true},
			"drops_and_jumps":    {leftOut: true},
			"drops_and_branches": {leftOut: true},
			"drops_elsewhere":    {leftOut: true},
			"returns_elsewhere":  {twice: true},
			"jumps_to_drops":     {leftOut: true},
			"bare_frame_or_not":  {leftOut: true},
			"pushes_another":     {},
			"restores":           {twice: true},
			"looks":              {},
			"bare_saves":         {twice: true},
			"bare_jumps":         {leftOut: true},
			"bare_drops":         {leftOut: true},
			"bare_text":          {leftOut: true},
			"bare_behind":        {leftOut: true},
			"bare_frame":         {twice: true},
			"bare_vector":        {twice: true},
			"bare_stack":         {twice: true},
			"bare_adds":          {leftOut: true},
			"bare_ending":        {},
			"bare_plain":         {},
		} {
			r := routine(t, p, "calls_"+symbol)
			if got := strings.HasPrefix(r.LeftOut,
				"calls what may return elsewhere at "); got != want.leftOut ||
				!got && r.LeftOut != "" {
				t.Errorf("%v: what calls %s is left out: %q, want %v", flags, symbol, r.LeftOut,
					want.leftOut)
			}
			for b := range r.Blocks {
				if r.Blocks[b].End != cfg.Call {
					continue
				}
				if got := p.CallReturnsTwice(r, b); !want.leftOut && got != want.twice {
					t.Errorf("%v: the call of %s returns twice: %v, want %v", flags, symbol, got,
						want.twice)
				}
			}
		}
	}
}

// What has neither unwind information nor a name may return twice as well: setjmp, where the C
// library is linked statically and the program is stripped.
func TestCallOfCodeInNoRoutine(t *testing.T) {
	full := recoverFile(t, compileFile(t, "returns/address.c", "-O1", "-fPIE", "-pie", "-w"))
	stripped := recoverFile(t,
		compileFile(t, "returns/address.c", "-O1", "-fPIE", "-pie", "-w", "-s"))
	for symbol, want := range map[string]bool{"bare_saves": true, "bare_frame": true,
		"bare_vector": true, "bare_plain": false} {
		r := stripped.At(routine(t, full, "calls_"+symbol).Addr)
		for b := range r.Blocks {
			if got := stripped.CallReturnsTwice(r, b); r.Blocks[b].End == cfg.Call && got != want {
				t.Errorf("the call of %s returns twice: %v, want %v", symbol, got, want)
			}
		}
	}
}

// A transaction begins anew where it is aborted (gcc -fgnu-tm).
func TestTransactionReturnsTwice(t *testing.T) {
	library := compileLibrary(t, "itm", "int _ITM_beginTransaction(unsigned flags, ...) { return "+
		"1; }")
	p := recoverFile(t, compileFile(t, "returns/transaction.c", "-O1", "-L"+library, "-litm"))
	r := routine(t, p, "begins")
	for b := range r.Blocks {
		if r.Blocks[b].End == cfg.Call && !p.CallReturnsTwice(r, b) {
			t.Error("the call returns once")
		}
	}
	if ends(r)[cfg.Call] != 1 {
		t.Errorf("%d calls", ends(r)[cfg.Call])
	}
}

// Functions in assembly may run into another that has a symbol of its own.
func TestSecondSymbol(t *testing.T) {
	if r := routine(t, recoverFile(t, compileFile(t, "returns/second-symbol.c", "-O1")),
		"first"); !strings.HasPrefix(r.LeftOut, "has a second entry at ") {
		t.Errorf("first is left out: %q", r.LeftOut)
	}
}

// std::rethrow_exception never returns: what follows its call is another way's.
func TestRethrowNeverReturns(t *testing.T) {
	r := routine(t, recoverFile(t, compileFile(t, "returns/rethrow.cc", "-O1")),
		"_Z5againNSt15__exception_ptr13exception_ptrEi")
	if got := ends(r); got[cfg.NoReturn] == 0 {
		t.Errorf("the blocks of again end in %v, want a call that does not return", got)
	}
}

// What a type is called that a function of the library is made for says nothing of the function;
// what a sanitizer calls to report an error says whether the program goes on.
func TestNamesOfWhatNeverReturns(t *testing.T) {
	for name, want := range map[string]bool{
		"_ZSt20__throw_length_errorPKc":                                                 true,
		"_ZNSt3__120__throw_length_errorB7v160006EPKc":                                  true,
		"_ZNKSt3__121__basic_string_commonILb1EE20__throw_length_errorEv":               true,
		"_ZNSt3__16vectorI14may__throw_op_NS_9allocatorIS1_EEE20__throw_length_errorEv": true,
		"_ZSt8for_eachIPi13may__throw_opET0_T_S3_S2_":                                   false,
		"_ZNSt3__16vectorI13may__throw_opNS_9allocatorIS1_EEE5clearEv":                  false,
		"_Z14may__throw_opsi":                                                           false,
		"__asan_report_load8":                                                           true,
		"__asan_report_store_n":                                                         true,
		"__asan_report_exp_load16":                                                      true,
		"__asan_report_load8_noabort":                                                   false,
		"__asan_report_error":                                                           false,
		"__ubsan_handle_add_overflow":                                                   false,
		"__ubsan_handle_add_overflow_abort":                                             true,
		"__ubsan_handle_builtin_unreachable":                                            true,
		"__ubsan_handle_missing_return":                                                 true,
	} {
		if got := sweep.IsNoReturnImport(name); got != want {
			t.Errorf("%s never returns: %v", name, got)
		}
	}
}

// Names that a library has do not keep a program, or another library, from having functions of the
// same names that return.
func TestNamesOfTheProgramsOwn(t *testing.T) {
	r := routine(t, recoverFile(t,
		compileFile(t, "returns/own-names.c", "-O1", "-w", "-fno-builtin")), "calls")
	if got := ends(r); got[cfg.Call] != 3 || got[cfg.Ret] != 1 || got[cfg.NoReturn] != 0 {
		t.Errorf("the blocks of calls end in %v, want three calls that return", got)
	}
}

// A return address that is read for a profiler's or an allocator's sake, and kept in the frame or
// in a register until it, or where it is in the frame, is an argument, is not stored; nor is what
// takes its register afterwards.
func TestReturnAddressAsArgument(t *testing.T) {
	covered := coverage{"argument": 0, "later": 0, "main": 0, "reuses": 0, "lends": 0}
	for _, flags := range [][]string{
		{"-O0"}, {"-O1"}, {"-O2"}, {"-O2", "-finstrument-functions"},
	} {
		p := recoverFile(t, compileFile(t, "returns/argument.c", flags...))
		for symbol, stores := range map[string]bool{
			"argument": false, "later": false, "main": false, "reuses": false, "lends": false,
			"keeps": true, "passes": true, "tells": true, "points": true, "shows": true,
			"copies": true,
		} {
			r := routine(t, p, symbol)
			isUnsure := strings.HasPrefix(r.LeftOut, "stores its own return address")
			if stores && !isUnsure || r.LeftOut != "" && !isUnsure {
				t.Errorf("%q: %s: left out: %q; it stores its return address: %v",
					flags, symbol, r.LeftOut, stores)
			}
			if !stores && r.LeftOut == "" {
				covered[symbol]++
			}
		}
	}
	covered.check(t, "argument.golden")
}

// A frame in which the return address is kept may be passed to a routine of the program, which
// nothing else gives it; whatever else is done with where it is lets the return address be
// read, and stored, unseen.
func TestFrameAsArgument(t *testing.T) {
	for name, c := range map[string]struct {
		body   string
		stores bool
	}{
		"kept, and no more": {`xor %eax,%eax`, false},
		"an argument":       {`lea (%rsp),%rdi\nmov $1,%esi\ncall keeps`, false},
		"moved to one":      {`mov %rsp,%rsi\nmov %rsi,%rdi\ncall keeps`, false},
		// mov %rsi,%rdi
		"moved, the other way":       {`lea (%rsp),%rsi\n.byte 0x48,0x8b,0xfe\ncall keeps`, false},
		"what lies above, stored":    {`lea 0x10(%rsp),%rdx\nmov %rdx,held(%rip)`, false},
		"what lies above, and given": {`lea 0x10(%rsp),%rdi\ncall keeps\nlea 0x10(%rsp),%rdx\nmov %rdx,held(%rip)`, true},
		"taken, the other way":       {`.byte 0x48,0x8b,0xfc\ncall keeps`, false}, // mov %rsp,%rdi
		"moved by a lea, and back":   {`lea -8(%rsp),%rsp\n.cfi_adjust_cfa_offset 8\nlea 8(%rsp),%rsp\n.cfi_adjust_cfa_offset -8`, false},
		"read above, by an index":    {`mov 0x10(%rsp,%rcx,8),%rdx`, true},
		"spared by the callee":       {`mov %rsp,%rsi\nmov %rsi,%rdi\ncall spares`, true},
		"in a register for later":    {`lea (%rsp),%rbx\nmov %rbx,%rdi\ncall keeps`, true},
		"moved to one for later":     {`lea (%rsp),%rdi\nmov %rdi,%rbx\ncall keeps`, true},
		"given back, and read by":    {`lea (%rsp),%rdi\ncall keeps\nmov (%rax),%rdx`, true},
		"given back, for a string":   {`lea (%rsp),%rdi\ncall keeps\nmov %rax,%rsi\nlea held(%rip),%rdi\nmovsq`, true},
		"read by one above":          {`lea 0x10(%rsp),%rdx\nmov -8(%rdx),%rcx`, true},
		"for a copy of memory":       {`lea (%rsp),%rdi\ncall own_memcpy`, true},
		"for another file's":         {`lea (%rsp),%rdi\ncall puts@plt`, true},
		"for nobody knows whom":      {`lea (%rsp),%rdi\ncall *%rax`, true},
		"for nobody":                 {`lea (%rsp),%rdi`, true},
		"of a string":                {`lea (%rsp),%rsi\nrep movsq\ncall keeps`, true},
		"loaded through":             {`lea (%rsp),%rdi\nmov (%rdi),%rdi\ncall keeps`, true},
		"read through":               {`lea (%rsp),%rdi\nmov (%rdi),%rdx\ncall keeps`, true},
		"loaded through, as index":   {`lea (%rsp),%rdi\nmov (%rdx,%rdi),%rdx\ncall keeps`, true},
		"stored":                     {`lea (%rsp),%rdi\nmov %rdi,held(%rip)\ncall keeps`, true},
		"stored, from rsp":           {`mov %rsp,held(%rip)\ncall keeps`, true},
		"pushed":                     {`push %rsp\n.cfi_adjust_cfa_offset 8\ncall keeps\npop %rdx\n.cfi_adjust_cfa_offset -8`, true},
		"in a vector":                {`lea (%rsp),%rdi\nmovq %rdi,%xmm0\ncall keeps`, true},
		"in part":                    {`lea (%rsp),%rdi\nmov %edi,%esi\ncall keeps`, true},
		"overwritten in part":        {`lea (%rsp),%rdi\nmov $1,%dil\ncall keeps`, true},
		"added to":                   {`lea (%rsp),%rdi\nadd $8,%rdi\ncall keeps`, true},
		"behind a jump": {`lea (%rsp),%rdi\ntest %edx,%edx\nje 1f\ncall keeps\n1:`,
			true},
		"behind a label": {`lea (%rsp),%rdi\n1: call keeps\ntest %eax,%eax\njne 1b`,
			true},
		"in rbp, which is no frame":  {`mov %rsp,%rbp\nmov %rbp,%rsi\nmov (%rsi),%rdx`, true},
		"and given where it ends":    {`lea 0x30(%rsp),%rdx\nmov %rdx,(%rsp)\nlea (%rsp),%rdi\ncall keeps`, true},
		"read by an index":           {`mov (%rsp,%rcx,8),%rdx`, true},
		"read beside":                {`mov 4(%rsp),%rdx`, true},
		"moved, and stored":          {`lea (%rsp),%rsi\nmov %rsi,%rdi\nmov %rdi,held(%rip)\ncall keeps`, true},
		"read by a vector":           {`movups (%rsp),%xmm0`, true},
		"added to what lies there":   {`add %rdx,8(%rsp)`, true},
		"read beside, and too far":   {`movups -0x4(%rsp),%xmm0`, true},
		"read at an index of what's": {`lea (%rsp,%rcx,8),%rdx`, true},
	} {
		p := recoverFile(t, compileFile(t, "returns/frame.c", "-O1", `-DBODY="`+c.body+`"`))
		if r := routine(t, p, "tells"); strings.HasPrefix(r.LeftOut,
			"stores its own return address") != c.stores || r.LeftOut != "" && !c.stores {
			t.Errorf("%s: left out: %q; it may store its return address: %v", name, r.LeftOut,
				c.stores)
		}
	}
}

// What is done with a return address in a register, but comparing it and passing it on, may store
// it.
func TestReturnAddressInRegister(t *testing.T) {
	for name, c := range map[string]struct {
		body   string
		stores bool
	}{
		"not used": {`xor %ecx,%ecx`, false},
		"compared": {`cmp %rax,(%rdi)\ntest %eax,%eax\ncmpq $5,(%rsp)`,
			false},
		"an argument, by another register":    {`mov %rax,%rsi\ncall keeps`, false},
		"read through":                        {`mov (%rax),%rdx\nmov %rdx,held(%rip)`, false},
		"overwritten":                         {`mov $1,%eax\nmov %rax,held(%rip)`, false},
		"of which another takes the register": {`mov (%rdi),%rax\nmov %rax,held(%rip)`, false},
		"written, not read":                   {`mov %rdx,(%rsp)`, false},
		"stored":                              {`mov %rax,held(%rip)`, true},
		"called":                              {`call *%rax\nmov %rdx,held(%rip)`, false},
		"added to in its place":               {`addq $0,(%rsp)`, false},
		"stored in the caller's frame":        {`mov %rax,8(%rsp)`, true},
		"popped to memory":                    {`pop held(%rip)`, true},
		"stored by halves":                    {`mov %eax,held(%rip)`, true},
		"stored by bytes":                     {`mov %al,held(%rip)`, true},
		"exchanged with memory":               {`xchg %rax,(%rdi)`, true},
		"compared and stored":                 {`mov %rax,%rdx\nlock cmpxchg %rdx,(%rdi)`, true},
		"stored past the caches":              {`movnti %rax,(%rdi)`, true},
		"moved to a vector":                   {`movq %rax,%xmm0`, true},
		"pushed":                              {`push %rax\n.cfi_adjust_cfa_offset 8\npop %rdx\n.cfi_adjust_cfa_offset -8`, true},
		"added up":                            {`add %rax,%rdx\nmov %rdx,(%rdi)`, true},
		"added to":                            {`add $8,%rax\nmov %rax,(%rdi)`, true},
		"by a lea":                            {`lea 1(%rax),%rdx\nmov %rdx,(%rdi)`, true},
		"perhaps moved":                       {`cmove %rax,%rdx\nmov %rdx,(%rdi)`, true},
		"a part of it":                        {`movzbl %al,%eax\nmov %rax,(%rdi)`, true},
		"the other half":                      {`movslq %eax,%rdx\nmov %rdx,(%rdi)`, true},
		"exchanged":                           {`xchg %rax,%rdx\nmov %rdx,(%rdi)`, true},
		"exchanged, the other way": {`mov %rax,%rcx\nxchg %rcx,%rdx\nmov %rdx,(%rdi)`,
			true},
		"stored by a string":     {`stosq`, true},
		"mangled":                {`xor (%rsp),%rdx\nmov %rdx,(%rdi)`, true},
		"exchanged in its place": {`xchg (%rsp),%rdx\nmov %rdx,(%rdi)`, true},
		"read by a vector":       {`movq (%rsp),%xmm0`, true},
		"pushed from its place":  {`push (%rsp)\n.cfi_adjust_cfa_offset 8\npop %rdx\n.cfi_adjust_cfa_offset -8`, true},
	} {
		p := recoverFile(t, compileFile(t, "returns/register.c", "-O1", `-DBODY="`+c.body+`"`))
		if r := routine(t, p, "reads"); p.ReturnsTwice(r.Addr) != c.stores {
			t.Errorf("%s: it may return twice: %v, want %v (left out: %q)", name, !c.stores,
				c.stores, r.LeftOut)
		}
	}
}

// What ends by a lea of rsp, as code with alloca does, takes no address for that.
func TestReturnAddressBesideAlloca(t *testing.T) {
	covered := coverage{"hook": 0}
	for _, level := range []string{"-O1", "-O2"} {
		r := routine(t, recoverFile(t, compileFile(t, "returns/alloca.c", level)), "hook")
		if r.LeftOut == "" {
			covered["hook"]++
		} else {
			t.Logf("%s: left out: %s", level, r.LeftOut)
		}
	}
	covered.check(t, "alloca.golden")
}

// What tests have in place of the C library's, and goes on, returns; so does what is behind a call
// of it.
func TestOwnAssertions(t *testing.T) {
	for _, name := range []string{"__assert_fail", "__stack_chk_fail", "__fortify_fail"} {
		path := compileFile(t, "returns/assertions.c",
			"-O1", "-fno-builtin", "-fno-stack-protector", "-DNAME="+name)
		r := routine(t, recoverFile(t, path), "checks")
		if got := ends(r); got[cfg.Call] != 1 || got[cfg.NoReturn] != 0 {
			t.Errorf("%s: the blocks of checks end in %v, want a call that returns", name, got)
		}
	}
}

// A call through a pointer may return twice where anything holds the address of what may.
func TestReturnsTwiceThroughPointers(t *testing.T) {
	const calls = `
		#include <setjmp.h>
		jmp_buf b; typedef int (*keeps)(struct __jmp_buf_tag *); typedef void (*leaves)(struct __jmp_buf_tag *, int);
		__attribute__((noinline)) int calls(keeps k) { return k(b) + 1; }
		int main(int c, char **v) { return calls((keeps)v[0]); } `
	loads := func(more string) string {
		return `keeps kept; __asm__(".globl loads\n.type loads,@function\nloads: .cfi_startproc\npush %rbx\n.cfi_adjust_cfa_offset 8\nmov _setjmp@GOTPCREL(%rip),%rbx\ncall *%rbx\n` + more + `\ncall *%rbx\npop %rbx\n.cfi_adjust_cfa_offset -8\nret\n.cfi_endproc\n.size loads,.-loads\n");`
	}
	const own = `int own(struct __jmp_buf_tag *), other(struct __jmp_buf_tag *); __asm__(".globl other\n.type other,@function\nother: .cfi_startproc\nxor %eax,%eax\nret\n.cfi_endproc\n.size other,.-other\n"
		".globl own\n.type own,@function\nown: .cfi_startproc\nmov (%rsp),%rdx\nmov %rdx,(%rdi)\nlea 8(%rsp),%rdx\nmov %rdx,8(%rdi)\nxor %eax,%eax\nret\n.cfi_endproc\n.size own,.-own\n");`
	for name, c := range map[string]struct {
		source string
		want   bool
	}{
		"nothing":          {"", false},
		"only called":      {"int plain(void) { return _setjmp(b); }", false},
		"data":             {"struct { keeps k; leaves l; } ops = { _setjmp, longjmp };", true},
		"constants":        {"const keeps all[] = { _setjmp };", true},
		"other routines":   {"keeps kept; void keep(void) { kept = _setjmp; }", true},
		"loaded for calls": {loads(""), false},
		"and kept":         {loads("mov %rbx,kept(%rip)"), true},
		"and moved":        {loads("mov %rbx,%rdi"), true},
		"and loaded from":  {loads(".byte 0x48,0x8b,0xfb"), true}, // mov %rbx,%rdi, the other way
		"and pushed": {loads("push %rbx\\n.cfi_adjust_cfa_offset 8\\ncall *%rbx\\npop " +
			"%rdi\\n.cfi_adjust_cfa_offset -8"), true},
		"and mangled":     {loads("xor %rbx,%r12"), true},
		"and in a vector": {loads("movq %rbx,%xmm0"), true},
		"and exchanged":   {loads("xchg %rax,%rbx"), true},
		"and added to":    {loads("lea (%rbx),%rbx\\nmov %rbx,%rdi"), true},
		"as an argument":  {loads("mov _setjmp@GOTPCREL(%rip),%rdi"), true},
		"in a part of it": {loads("mov $0,%bx\\nmov %rbx,%rdi"), true},
		"and overwritten": {loads("mov %rax,%rbx\\nmov %rbx,%rdi\\nmov " +
			"_setjmp@GOTPCREL(%rip),%rbx"), false},
		"out of sight": {`keeps kept; __asm__("mov _setjmp@GOTPCREL(%rip),%rdi\nmov %rdi,kept(%rip)\nret\n");`, true},
		"own":          {own + `keeps kept = own;`, true},
		"own, packed": {own +
			`const struct { char c; keeps k; } __attribute__((packed)) all[] = { { 1, other }, { 2, own } };`, true},
		"own, by distance": {own +
			`__asm__(".section .rodata\n.p2align 2\n.globl all\n.hidden all\nall: .long other-all, own-all\n.text\n"); extern const int all[] __attribute__((visibility("hidden"))); long first(long i) { return (long)all + all[i]; }`, true},
		"own, called": {own + `int direct(void) { return own(b) + other(b); }`, false},
	} {
		for _, flags := range [][]string{{"-O1"}, {"-O1", "-fno-pie", "-no-pie"},
			{"-O1", "-fno-plt"}} {
			p := recoverFile(t, compile(t, calls+c.source, flags...))
			r := routine(t, p, "calls")
			for b := range r.Blocks {
				if got := p.CallReturnsTwice(r, b); r.Blocks[b].End == cfg.CallInd &&
					got != c.want {
					t.Errorf("%s, %q: a call through a pointer may return twice: %v, want %v", name,
						flags, got, c.want)
				}
			}
			if !strings.Contains(c.source, "loads:") {
				continue
			}
			for b, r := 0, routine(t, p, "loads"); b < len(r.Blocks); b++ {
				if r.Blocks[b].End == cfg.CallInd && !p.CallReturnsTwice(r, b) {
					t.Errorf("%s, %q: the call of setjmp through a register returns but once", name,
						flags)
				}
			}
		}
	}
}

// What ends by a jump through a pointer returns as often as what it jumps to.
func TestReturnsTwiceThroughTailJumps(t *testing.T) {
	for pointer, want := range map[string]bool{"0": false, "_setjmp": true} {
		p := recoverFile(t, compile(t, `
			#include <setjmp.h>
			jmp_buf b; typedef int (*keeps)(struct __jmp_buf_tag *); volatile keeps kept = `+pointer+`; volatile int n;
			__attribute__((noinline)) int tail(keeps k, struct __jmp_buf_tag *b) { n++; return k(b); }
			int main(int c, char **v) { return tail(kept, b) + 1; }`, "-O2"))
		r := routine(t, p, "main")
		for b := range r.Blocks {
			if got := p.CallReturnsTwice(r, b); r.Blocks[b].End == cfg.Call && got != want {
				t.Errorf("data holds %s: a call of what tail jumps through a pointer may return "+
					"twice: %v, want %v", pointer, got, want)
			}
		}
	}
}
