package truth

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// An operand is memory that an instruction accesses, as objdump writes it.
type operand struct {
	base, index int8 // hardware numbers; none
	scale       uint8
	disp        int64
	image       bool // disp is a link-time address
	segment     byte // 'f' fs, 'g' gs, or 0
	narrow      bool // the address is of 32 bits
	size        int  // bytes
	read, write bool
	bit         int8 // of bt and its kin: the register that has the number of the bit, or none
	repeats     bool // as often as rcx says, or less
}

const none = -1

// sizes are objdump's words for how much a memory operand is.
var sizes = map[string]int{
	"BYTE": 1, "WORD": 2, "DWORD": 4, "FWORD": 6, "QWORD": 8, "TBYTE": 10, "OWORD": 16,
	"XMMWORD": 16, "YMMWORD": 32, "ZMMWORD": 64,
}

var prefixes = map[string]bool{
	"rep": true, "repz": true, "repnz": true, "lock": true, "data16": true, "addr32": true,
	"cs": true, "ds": true, "es": true, "ss": true, "fs": true, "gs": true, "bnd": true,
	"notrack": true, "xacquire": true, "xrelease": true,
}

// A disassembled instruction is what its text says that it accesses and uses.
type disassembled struct {
	operands []operand
	flags    uint32  // that decide what it does, as RFLAGS has them
	vectors  []uint8 // vector registers that it names
}

// disassemble reads what `objdump -d -w -M intel --no-show-raw-insn` prints, and returns the
// instructions by link-time address.
func disassemble(r io.Reader) (map[uint64]disassembled, error) {
	found := map[uint64]disassembled{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		at, text, ok := strings.Cut(lines.Text(), ":\t")
		if !ok {
			continue
		}
		pc, err := strconv.ParseUint(strings.TrimSpace(at), 16, 64)
		if err != nil {
			continue
		}
		list, err := accesses(text)
		if err != nil {
			return nil, fmt.Errorf("operands of %q at %x: %w", text, pc, err)
		}
		found[pc] = disassembled{list, flagsOf(mnemonicOf(text)), vectorsOf(text)}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read disassembly: %w", err)
	}
	return found, nil
}

// mnemonicOf is an instruction's without its prefixes.
func mnemonicOf(text string) string {
	for _, word := range strings.Fields(text) {
		if !prefixes[word] && !strings.HasPrefix(word, "rex") {
			return word
		}
	}
	return ""
}

// The flags as RFLAGS has them.
const carry, parity, adjust, zero, sign, direct, overflow = 1, 4, 0x10, 0x40, 0x80, 0x400, 0x800

// ofCondition are the flags that conditions ask for, by the ends of mnemonics.
var ofCondition = map[string]uint32{
	"o": overflow, "no": overflow, "b": carry, "c": carry, "nae": carry, "ae": carry, "nb": carry,
	"nc": carry, "e": zero, "z": zero, "ne": zero, "nz": zero, "be": carry | zero,
	"na": carry | zero, "a": carry | zero, "nbe": carry | zero, "s": sign, "ns": sign, "p": parity,
	"pe": parity, "np": parity, "po": parity, "l": sign | overflow, "nge": sign | overflow,
	"ge": sign | overflow, "nl": sign | overflow, "le": zero | sign | overflow,
	"ng": zero | sign | overflow, "g": zero | sign | overflow, "nle": zero | sign | overflow,
}

// flagsOf are the flags that an instruction uses, as the processor's manual has it.
func flagsOf(mnemonic string) uint32 {
	for _, prefix := range []string{"j", "set", "cmov"} {
		if end, ok := strings.CutPrefix(mnemonic, prefix); ok && ofCondition[end] != 0 {
			return ofCondition[end]
		}
	}
	if isString(mnemonic) {
		return direct
	}
	switch mnemonic {
	case "adc", "sbb", "rcl", "rcr", "cmc", "adcx":
		return carry
	case "adox":
		return overflow
	case "loope", "loopne":
		return zero
	case "lahf":
		return carry | parity | adjust | zero | sign
	case "pushf":
		return carry | parity | adjust | zero | sign | direct | overflow
	}
	return 0
}

// vectorsOf are the numbers of the vector registers that an instruction names.
func vectorsOf(text string) (list []uint8) {
	for _, word := range strings.FieldsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	}) {
		for _, prefix := range []string{"xmm", "ymm"} {
			digits, ok := strings.CutPrefix(word, prefix)
			if n, err := strconv.ParseUint(digits, 10, 4); ok && err == nil {
				list = append(list, uint8(n))
			}
		}
	}
	return list
}

// accesses are those of one instruction. An error: objdump has written what is not understood.
func accesses(text string) ([]operand, error) {
	text, comment, _ := strings.Cut(text, "#")
	words := strings.Fields(text)
	repeats := false
	for len(words) > 1 && (prefixes[words[0]] || strings.HasPrefix(words[0], "rex")) {
		repeats = repeats || strings.HasPrefix(words[0], "rep")
		words = words[1:]
	}
	if len(words) == 0 {
		return nil, nil
	}
	mnemonic := words[0]
	list := implicit(mnemonic)
	if touchesNothing(mnemonic) {
		return list, nil
	}
	for i, arg := range splitArguments(strings.Join(words[1:], " ")) {
		word, place, ok := strings.Cut(arg, " PTR ")
		if !ok {
			continue
		}
		o, err := parsePlace(place, comment)
		if err != nil {
			return nil, err
		}
		if o.size = sizes[word]; o.size == 0 {
			return nil, fmt.Errorf("size %q is unknown", word)
		}
		o.read, o.write = direction(mnemonic, i)
		o.repeats = repeats && isString(mnemonic)
		if mnemonic == "pop" && o.base == rsp {
			o.disp += 8 // rsp has grown when the address is made
		}
		if bits := strings.Split(text, ","); mnemonic[:min(2, len(mnemonic))] == "bt" && i == 0 &&
			len(bits) == 2 {
			o.bit = register(strings.TrimSpace(bits[1]))
		}
		list = append(list, o)
	}
	return list, nil
}

const rsp, rbp = 4, 5

// implicit are accesses that objdump does not write out.
func implicit(mnemonic string) []operand {
	stack := operand{base: rsp, index: none, bit: none, size: 8}
	switch mnemonic {
	case "push", "call", "pushf":
		stack.disp, stack.write = -8, true
	case "pop", "ret", "popf":
		stack.read = true
	case "leave":
		stack.base, stack.read = rbp, true
	default:
		return nil
	}
	return []operand{stack}
}

func touchesNothing(mnemonic string) bool {
	return mnemonic == "lea" || mnemonic == "nop" || mnemonic == "endbr64" ||
		strings.HasPrefix(mnemonic, "prefetch") || strings.HasPrefix(mnemonic, "clflush") ||
		strings.Contains(mnemonic, "gather") || strings.HasPrefix(mnemonic, "xsave") ||
		strings.HasPrefix(mnemonic, "xrstor") || strings.HasPrefix(mnemonic, "fx")
}

func isString(mnemonic string) bool {
	switch mnemonic {
	case "movs", "stos", "lods", "scas", "cmps":
		return true
	}
	return false
}

// direction says what an instruction does with its operand i, which is memory.
func direction(mnemonic string, i int) (read, write bool) {
	has := func(list ...string) bool {
		for _, p := range list {
			if strings.HasPrefix(mnemonic, p) {
				return true
			}
		}
		return false
	}
	switch {
	case mnemonic == "xchg" || mnemonic == "xadd":
		return true, true
	case i > 0:
		return true, false
	case mnemonic == "cmpxchg" || mnemonic == "cmpxchg8b" || mnemonic == "cmpxchg16b":
		return true, true
	case mnemonic == "bt" || has("cmp", "test", "vptest", "ptest", "ucomis", "comis", "vucomis",
		"vcomis", "push", "call", "jmp", "mul", "imul", "div", "idiv", "scas", "lods", "ldmxcsr",
		"vldmxcsr", "fld", "fild", "fadd", "fsub", "fmul", "fdiv", "fcom", "fiadd", "fisub", "fimul",
		"fidiv", "ficom", "fbld", "frstor"):
		return true, false
	case has("mov", "vmov", "set", "pop", "stos", "st", "vst", "fst", "fist", "fbst", "fnst",
		"pextr", "vpextr", "extract", "vextract", "vcvtps2ph", "vpmov", "vpmaskmov", "vmaskmov",
		"fnsave", "maskmov"):
		return false, true
	}
	return true, true
}

// splitArguments splits at commas; none stands within brackets in this syntax.
func splitArguments(s string) []string { return strings.Split(s, ",") }

// parsePlace reads `[rax+rdi*8-0x10]`, `fs:0x28`, `es:[rdi]`, `ds:0x601040`.
func parsePlace(s, comment string) (operand, error) {
	o := operand{base: none, index: none, bit: none, scale: 1}
	if segment, rest, ok := strings.Cut(s, ":"); ok {
		if segment == "fs" || segment == "gs" {
			o.segment = segment[0]
		}
		s = rest
	}
	inner, ok := strings.CutPrefix(s, "[")
	if !ok {
		v, err := number(s)
		o.disp = v
		return o, err
	}
	inner, _, ok = strings.Cut(inner, "]")
	if !ok {
		return o, fmt.Errorf("place %q has no end", s)
	}
	for _, term := range strings.Split(strings.ReplaceAll(inner, "-", "+-"), "+") {
		switch name, scale, scaled := strings.Cut(term, "*"); {
		case term == "":
		case term == "rip" || term == "eip":
			words := strings.Fields(comment)
			if len(words) == 0 {
				return o, fmt.Errorf("%q has no address beside it", s)
			}
			v, err := strconv.ParseUint(words[0], 16, 64)
			if err != nil {
				return o, fmt.Errorf("%q is no address", words[0])
			}
			o.image, o.disp = true, int64(v)
			return o, nil
		case scaled:
			n, err := strconv.Atoi(scale)
			if err != nil {
				return o, fmt.Errorf("scale %q is not a number", scale)
			}
			if name == "riz" || name == "eiz" {
				continue
			}
			o.scale, o.index = uint8(n), register(name)
			if o.index == none {
				return o, fmt.Errorf("register %q is unknown", name)
			}
			o.narrow = o.narrow || strings.HasPrefix(name, "e") || strings.HasSuffix(name, "d")
		case register(term) != none:
			o.base = register(term)
			o.narrow = o.narrow || strings.HasPrefix(term, "e") || strings.HasSuffix(term, "d")
		default:
			v, err := number(term)
			if err != nil {
				return o, err
			}
			o.disp += v
		}
	}
	return o, nil
}

func number(s string) (int64, error) {
	digits, negative := strings.CutPrefix(s, "-")
	v, err := strconv.ParseUint(digits, 0, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is neither a register nor a number", s)
	}
	if negative {
		v = -v
	}
	return int64(v), nil
}

// register is the hardware number of a general register of 16, 32 or 64 bits, or none.
func register(name string) int8 {
	if n, ok := registers[name]; ok {
		return n
	}
	return none
}

var registers = func() map[string]int8 {
	m := map[string]int8{}
	for i, name := range []string{"ax", "cx", "dx", "bx", "sp", "bp", "si", "di"} {
		m[name], m["e"+name], m["r"+name] = int8(i), int8(i), int8(i)
	}
	for i := int8(8); i < 16; i++ {
		name := fmt.Sprintf("r%d", i)
		m[name], m[name+"d"], m[name+"w"] = i, i, i
	}
	return m
}()

// address is where the operand lies. Registers are as the instruction finds them.
func (o *operand) address(r *[18]uint64, gs, bias uint64) uint64 {
	at := uint64(o.disp)
	if o.image {
		return at + bias
	}
	if o.base != none {
		at += r[o.base]
	}
	if o.index != none {
		at += r[o.index] * uint64(o.scale)
	}
	if o.bit != none {
		n := int64(r[o.bit])
		switch o.size {
		case 2:
			n = int64(int16(n))
		case 4:
			n = int64(int32(n))
		}
		bits := int64(o.size) * 8
		at += uint64((n &^ (bits - 1)) / 8)
	}
	if o.narrow {
		at = uint64(uint32(at))
	}
	switch o.segment {
	case 'f':
		at += r[FSBase]
	case 'g':
		at += gs
	}
	return at
}
