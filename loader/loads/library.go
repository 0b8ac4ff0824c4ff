package loads

import (
	"strings"

	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
	"wpptrace/loader/x86"
)

// An Effect says what a function of a library writes to memory, besides its own frame.
type Effect uint8

const (
	Any     Effect = iota // it is not known what
	Heap                  // what is allocated, or was
	Nothing               // it only reads
)

// EffectOf is that of a function of the C library, or of C++'s, by its name, which a version may
// follow.
func EffectOf(name string) Effect {
	switch name, _, _ = strings.Cut(name, "@"); name {
	case "memcmp", "bcmp", "memchr", "memrchr", "strlen", "strnlen", "strcmp", "strncmp",
		"strcasecmp", "strncasecmp", "strchr", "strchrnul", "strrchr", "strstr", "strspn",
		"strcspn", "strpbrk", "__errno_location", "__ctype_b_loc", "__ctype_tolower_loc",
		"__ctype_toupper_loc", CompareStrings, HashBytes,
		"_ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE7compareEPKc",
		"_ZSt18_Rb_tree_incrementPSt18_Rb_tree_node_base",
		"_ZSt18_Rb_tree_incrementPKSt18_Rb_tree_node_base",
		"_ZSt18_Rb_tree_decrementPSt18_Rb_tree_node_base",
		"_ZSt18_Rb_tree_decrementPKSt18_Rb_tree_node_base":
		return Nothing
	case "malloc", "calloc", "realloc", "free", "aligned_alloc", "_Znwm", "_Znam", "_ZdlPv",
		"_ZdlPvm", "_ZdaPv", "_ZdaPvm":
		return Heap
	}
	return Any
}

// Functions of C++'s library: std::string::compare of another string, and what std::hash of strings
// calls.
const (
	CompareStrings = "_ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE7compareERKS4_"
	HashBytes      = "_ZSt11_Hash_bytesPKvmm"
)

// mostOfString is how many bytes are read of what a function of a library reads.
const mostOfString = 32

// readBy says at how many of its first arguments a function of a library reads what a hit is to
// read as well; objects: these lead to a pointer to that, and its length behind it.
func readBy(name string) (arguments int, objects bool) {
	switch name, _, _ = strings.Cut(name, "@"); name {
	case "memcmp", "bcmp", "strcmp", "strncmp":
		return 2, false
	case "strlen", "memchr", HashBytes:
		return 1, false
	case CompareStrings:
		return 2, true
	}
	return 0, false
}

// passes follows a call of a function that only reads, which ends a block: what that reads is a
// load. It reports whether it is one.
func (f *follower) passes(w *way, st *state, r *plan.Routine, block int) bool {
	if f.ends || f.traces {
		return false
	}
	_, name := f.plan.Program.Callee(r.Routine, block)
	if name == "" {
		name = f.inRegister(st, r, block)
	}
	if EffectOf(name) != Nothing {
		return false
	}
	arguments, objects := readBy(name)
	for _, reg := range []int8{x86.RDI, x86.RSI}[:arguments] {
		at := st.regs[reg]
		if objects {
			f.noteRead(w, at, 16)
			at, _ = f.content(st, at, 8)
		}
		f.noteRead(w, at, mostOfString)
	}
	w.leaves = true
	stores := st.stores
	st.forget()
	st.stores, st.passed = stores, true
	return true
}

// inRegister names the function that a block calls by a register, which has been loaded on the way.
func (f *follower) inRegister(st *state, r *plan.Routine, block int) string {
	b := &r.Blocks[block]
	q := &b.Insns[len(b.Insns)-1]
	e := q.Effects(r.Code(q), q.End())
	if b.End != cfg.CallInd || e.Src.Mem || e.Src.Reg < 0 || e.Src.Reg > 15 {
		return ""
	}
	v := st.regs[e.Src.Reg]
	if n := &f.ns.list[v.node]; v.node >= fixed && v.add == 0 && n.op == Fetch &&
		n.a.node == biasNode {
		return f.plan.Program.Image.Imports()[uint64(n.a.add)]
	}
	return ""
}

// noteRead notes what a function of a library reads.
func (f *follower) noteRead(w *way, at value, size uint8) {
	if at.isKnown() && !f.isReadOnly(at) {
		w.loads = append(w.loads, load{at: at, size: size, need: byLibrary})
	}
}
