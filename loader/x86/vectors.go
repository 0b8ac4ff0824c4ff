package x86

import (
	"strings"
	"sync"
)

// A VectorOperand is one of a vector instruction: a vector register, a general one, or memory.
type VectorOperand struct {
	Operand
	Vector bool // Reg is that of a vector register
}

// VectorEffects are what a vector instruction computes, from Third and Src to Dst; Third is none
// where there is one source, and Dst, or a part of it, where the instruction changes that. They
// tell instructions apart by their names, without the v of VEX. Size is in bytes: of the vectors,
// or of the one element that is computed. The Size of a vector register as an operand is how many
// bytes of it are meant.
type VectorEffects struct {
	Name            string
	Size            uint8
	Dst, Src, Third VectorOperand
	Imm             uint8
	// Clears says that what is above the result in its register becomes 0.
	Clears bool
}

// A vectorForm says where the operands of a vector instruction are. In its letters, for Dst, Third
// and Src: R is the vector register of the reg field, M that of r/m or memory, V that of vvvv, and
// without VEX that of Dst; G and E are general registers at R and M; - is none.
type vectorForm struct {
	name  string
	at    string
	size  uint8 // of the result; 0: of the whole vectors
	read  uint8 // of Src; 0: as Size; or a share of it
	width uint8 // the only VEX.L that it has, plus one; 0: any
	vex   bool  // it exists with VEX alone
	old   bool  // it exists without VEX alone
	wide  bool  // operands E and G have 8 bytes under W; the name gets a q
}

// The shares of the vector that Src may have.
const (
	half = 0x80 + iota
	quarter
	eighth
	upper // a lane of 16 bytes
)

// vectorKey is map, implied prefix and opcode.
type vectorKey struct{ space, prefix, op uint8 }

var vectorForms = sync.OnceValue(vectorFormMap)

type vectorMap map[vectorKey]vectorForm

// packed sets what an opcode is for the implied prefixes none, 66, f3 and f2, by names between
// spaces, - for none. Names that end in ss or sd are of one element.
func (t vectorMap) packed(op uint8, at, names string) {
	for prefix, name := range strings.Fields(names) {
		f := vectorForm{name: name, at: at}
		switch {
		case name == "-":
			continue
		case strings.HasSuffix(name, "ss"):
			f.size = 4
		case strings.HasSuffix(name, "sd"):
			f.size = 8
		}
		if f.size > 0 {
			f.at = strings.Replace(at, "R-M", "RVM", 1)
		}
		t[vectorKey{1, uint8(prefix), op}] = f
	}
}

// row sets consecutive opcodes with the prefix 66, by names between spaces.
func (t vectorMap) row(space, op uint8, at, names string) {
	for i, name := range strings.Fields(names) {
		if name != "-" {
			t[vectorKey{space, 1, op + uint8(i)}] = vectorForm{name: name, at: at}
		}
	}
}

func vectorFormMap() vectorMap {
	t := vectorMap{}
	t.packed(0x14, "RVM", "unpcklps unpcklpd")
	t.packed(0x15, "RVM", "unpckhps unpckhpd")
	t.packed(0x28, "R-M", "mov mov")
	t.packed(0x29, "M-R", "mov mov")
	t.packed(0x2b, "M-R", "mov mov")
	t.packed(0x51, "R-M", "sqrtps sqrtpd sqrtss sqrtsd")
	t.packed(0x54, "RVM", "and and")
	t.packed(0x55, "RVM", "andn andn")
	t.packed(0x56, "RVM", "or or")
	t.packed(0x57, "RVM", "xor xor")
	t.packed(0x58, "RVM", "addps addpd addss addsd")
	t.packed(0x59, "RVM", "mulps mulpd mulss mulsd")
	t.packed(0x5c, "RVM", "subps subpd subss subsd")
	t.packed(0x5d, "RVM", "minps minpd minss minsd")
	t.packed(0x5e, "RVM", "divps divpd divss divsd")
	t.packed(0x5f, "RVM", "maxps maxpd maxss maxsd")
	t.packed(0x5b, "R-M", "cvtdq2ps cvtps2dq cvttps2dq")
	t.packed(0x7c, "RVM", "- haddpd - haddps")
	t.packed(0x7d, "RVM", "- hsubpd - hsubps")
	t.packed(0xc2, "RVM", "cmpps cmppd cmpss cmpsd")
	t.packed(0xc6, "RVM", "shufps shufpd")
	t.packed(0xd0, "RVM", "- addsubpd - addsubps")
	t.packed(0x12, "R-M", "- - movsldup")
	t.packed(0x16, "R-M", "- - movshdup")
	t.packed(0x50, "G-M", "movmskps movmskpd")
	t.packed(0x6f, "R-M", "- mov mov")
	t.packed(0x7f, "M-R", "- mov mov")
	t.packed(0xe7, "M-R", "- mov")
	t.packed(0xf0, "R-M", "- - - mov")
	t.packed(0x70, "R-M", "- pshufd pshufhw pshuflw")
	t.setParts()
	t.setConversions()
	t.row(1, 0x60, "RVM", "punpcklbw punpcklwd punpckldq packsswb pcmpgtb pcmpgtw pcmpgtd packuswb "+
		"punpckhbw punpckhwd punpckhdq packssdw punpcklqdq punpckhqdq")
	t.row(1, 0x74, "RVM", "pcmpeqb pcmpeqw pcmpeqd")
	t.row(1, 0xd1, "RVM", "psrlw psrld psrlq paddq pmullw - - psubusb psubusw pminub and paddusb "+
		"paddusw pmaxub andn pavgb psraw psrad pavgw pmulhuw pmulhw - - psubsb psubsw pminsw or "+
		"paddsb paddsw pmaxsw xor - psllw pslld psllq pmuludq pmaddwd psadbw - psubb psubw psubd "+
		"psubq paddb paddw paddd")
	t.row(1, 0xd7, "G-M", "pmovmskb")
	t.row(2, 0x00, "RVM", "pshufb phaddw phaddd phaddsw pmaddubsw phsubw phsubd phsubsw psignb "+
		"psignw psignd pmulhrsw")
	t.row(2, 0x17, "R-M", "ptest")
	t.row(2, 0x1c, "R-M", "pabsb pabsw pabsd")
	t.row(2, 0x28, "RVM", "pmuldq pcmpeqq - packusdw")
	t.row(2, 0x2a, "R-M", "mov")
	t.row(2, 0x37, "RVM", "pcmpgtq pminsb pminsd pminuw pminud pmaxsb pmaxsd pmaxuw pmaxud pmulld")
	t.row(3, 0x08, "R-M", "roundps roundpd")
	t.row(3, 0x0c, "RVM", "blendps blendpd pblendw palignr")
	for i, name := range []string{"bw", "bd", "bq", "wd", "wq", "dq"} {
		read := []uint8{half, quarter, eighth, half, quarter, half}[i]
		op := uint8(0x20 + i)
		t[vectorKey{2, 1, op}] = vectorForm{name: "pmovsx" + name, at: "R-M", read: read}
		t[vectorKey{2, 1, op + 0x10}] = vectorForm{name: "pmovzx" + name, at: "R-M", read: read}
	}
	for op, name := range map[uint8]string{0x10: "pblendvb", 0x14: "blendvps", 0x15: "blendvpd"} {
		t[vectorKey{2, 1, op}] = vectorForm{name: name, at: "RVM", old: true}
	}
	t[vectorKey{3, 1, 0x21}] = vectorForm{name: "insertps", at: "RVM", size: 16, width: 1}
	t[vectorKey{3, 1, 0x0a}] = vectorForm{name: "roundss", at: "RVM", size: 4}
	t[vectorKey{3, 1, 0x0b}] = vectorForm{name: "roundsd", at: "RVM", size: 8}
	t.setAVX()
	return t
}

// setParts sets what moves a part of a vector.
func (t vectorMap) setParts() {
	set := func(space, prefix, op uint8, f vectorForm) { t[vectorKey{space, prefix, op}] = f }
	set(1, 3, 0x12, vectorForm{name: "movddup", at: "R-M"})
	set(1, 1, 0x6e, vectorForm{name: "movzero", at: "R-E", wide: true, width: 1})
	set(1, 1, 0x7e, vectorForm{name: "movout", at: "E-R", wide: true, width: 1})
	set(1, 2, 0x7e, vectorForm{name: "movzero", at: "R-M", size: 8, width: 1})
	set(1, 1, 0xd6, vectorForm{name: "movq", at: "M-R", size: 8, width: 1})
	set(1, 1, 0xc4, vectorForm{name: "pinsr", at: "RVE", size: 16, read: 2, width: 1})
	set(1, 1, 0xc5, vectorForm{name: "pextr", at: "G-M", size: 2, read: 16, width: 1})
	set(3, 1, 0x14, vectorForm{name: "pextr", at: "E-R", size: 1, read: 16, width: 1})
	set(3, 1, 0x15, vectorForm{name: "pextr", at: "E-R", size: 2, read: 16, width: 1})
	set(3, 1, 0x16, vectorForm{name: "pextr", at: "E-R", wide: true, read: 16, width: 1})
	set(3, 1, 0x17, vectorForm{name: "pextr", at: "E-R", size: 4, read: 16, width: 1})
	set(3, 1, 0x20, vectorForm{name: "pinsr", at: "RVE", size: 16, read: 1, width: 1})
	set(3, 1, 0x22, vectorForm{name: "pinsr", at: "RVE", size: 16, wide: true, width: 1})
	set(1, 0, 0x2e, vectorForm{name: "ucomiss", at: "R-M", size: 4})
	set(1, 0, 0x2f, vectorForm{name: "comiss", at: "R-M", size: 4})
	set(1, 1, 0x2e, vectorForm{name: "ucomisd", at: "R-M", size: 8})
	set(1, 1, 0x2f, vectorForm{name: "comisd", at: "R-M", size: 8})
	for i := range uint8(2) { // low and high halves; what registers make of them, vectorOf says
		set(1, i, 0x12, vectorForm{name: "movlow", at: "RVM", size: 16, read: 8, width: 1})
		set(1, i, 0x16, vectorForm{name: "movhigh", at: "RVM", size: 16, read: 8, width: 1})
		set(1, i, 0x13, vectorForm{name: "movout", at: "M-R", size: 8, width: 1})
		set(1, i, 0x17, vectorForm{name: "movhighout", at: "M-R", size: 8, width: 1})
		set(1, i, 0x10, vectorForm{name: "mov", at: "R-M"})
		set(1, i, 0x11, vectorForm{name: "mov", at: "M-R"})
		set(1, 2+i, 0x10, vectorForm{name: "movzero", at: "R-M", size: 4 << i})
		set(1, 2+i, 0x11, vectorForm{name: "movout", at: "M-R", size: 4 << i})
	}
}

func (t vectorMap) setConversions() {
	set := func(prefix, op uint8, f vectorForm) { t[vectorKey{1, prefix, op}] = f }
	set(2, 0x2a, vectorForm{name: "cvtsi2ss", at: "RVE", size: 4, wide: true})
	set(3, 0x2a, vectorForm{name: "cvtsi2sd", at: "RVE", size: 8, wide: true})
	set(2, 0x2c, vectorForm{name: "cvttss2si", at: "G-M", size: 4, wide: true})
	set(3, 0x2c, vectorForm{name: "cvttsd2si", at: "G-M", size: 8, wide: true})
	set(2, 0x2d, vectorForm{name: "cvtss2si", at: "G-M", size: 4, wide: true})
	set(3, 0x2d, vectorForm{name: "cvtsd2si", at: "G-M", size: 8, wide: true})
	set(0, 0x5a, vectorForm{name: "cvtps2pd", at: "R-M", read: half})
	set(1, 0x5a, vectorForm{name: "cvtpd2ps", at: "R-M"})
	set(2, 0x5a, vectorForm{name: "cvtss2sd", at: "RVM", size: 8, read: 4})
	set(3, 0x5a, vectorForm{name: "cvtsd2ss", at: "RVM", size: 4, read: 8})
	set(1, 0xe6, vectorForm{name: "cvttpd2dq", at: "R-M"})
	set(2, 0xe6, vectorForm{name: "cvtdq2pd", at: "R-M", read: half})
	set(3, 0xe6, vectorForm{name: "cvtpd2dq", at: "R-M"})
}

// setAVX sets what exists with VEX alone.
func (t vectorMap) setAVX() {
	set := func(space, op uint8, f vectorForm) {
		f.vex = true
		t[vectorKey{space, 1, op}] = f
	}
	set(2, 0x18, vectorForm{name: "broadcast4", at: "R-M", read: 4})
	set(2, 0x19, vectorForm{name: "broadcast8", at: "R-M", read: 8, width: 2})
	set(2, 0x1a, vectorForm{name: "broadcast16", at: "R-M", read: 16, width: 2})
	set(2, 0x58, vectorForm{name: "broadcast4", at: "R-M", read: 4})
	set(2, 0x59, vectorForm{name: "broadcast8", at: "R-M", read: 8})
	set(2, 0x5a, vectorForm{name: "broadcast16", at: "R-M", read: 16, width: 2})
	set(2, 0x78, vectorForm{name: "broadcast1", at: "R-M", read: 1})
	set(2, 0x79, vectorForm{name: "broadcast2", at: "R-M", read: 2})
	set(2, 0x16, vectorForm{name: "vpermd", at: "RVM", width: 2})
	set(2, 0x36, vectorForm{name: "vpermd", at: "RVM", width: 2})
	set(3, 0x00, vectorForm{name: "vpermq", at: "R-M", width: 2})
	set(3, 0x01, vectorForm{name: "vpermq", at: "R-M", width: 2})
	set(3, 0x02, vectorForm{name: "blendps", at: "RVM"})
	set(3, 0x04, vectorForm{name: "pshufd", at: "R-M"})
	set(3, 0x05, vectorForm{name: "vpermilpd", at: "R-M"})
	set(3, 0x06, vectorForm{name: "vperm2", at: "RVM", width: 2})
	set(3, 0x46, vectorForm{name: "vperm2", at: "RVM", width: 2})
	set(3, 0x18, vectorForm{name: "vinsert", at: "RVM", read: 16, width: 2})
	set(3, 0x38, vectorForm{name: "vinsert", at: "RVM", read: 16, width: 2})
	set(3, 0x19, vectorForm{name: "vextract", at: "M-R", size: 16, read: 32, width: 2})
	set(3, 0x39, vectorForm{name: "vextract", at: "M-R", size: 16, read: 32, width: 2})
	for i, name := range []string{"blendvps", "blendvpd", "pblendvb"} { // the mask is in the immediate
		set(3, 0x4a+uint8(i), vectorForm{name: name, at: "RVM"})
	}
	for i, name := range []string{"vpsrlv", "vpsrav", "vpsllv"} {
		set(2, 0x45+uint8(i), vectorForm{name: name, at: "RVM", wide: true})
	}
}

// shiftNames are the shifts by an immediate, by opcode and reg field.
var shiftNames = map[[2]uint8]string{
	{0x71, 2}: "psrlw", {0x71, 4}: "psraw", {0x71, 6}: "psllw",
	{0x72, 2}: "psrld", {0x72, 4}: "psrad", {0x72, 6}: "pslld",
	{0x73, 2}: "psrlq", {0x73, 3}: "psrldq", {0x73, 6}: "psllq", {0x73, 7}: "pslldq",
}

// Vectors returns what a vector instruction computes. ok is false where that is not known: those of
// the MMX registers, of EVEX, and what no compiler makes much of.
func (e *Effects) Vectors() (v VectorEffects, ok bool) {
	in := &e.in
	space, vex := in.Map&0xf, in.Map&0xf0 == 0x10
	if in.Map >= 0x20 || !in.HasModRM && !vex {
		return v, false
	}
	v.Clears = vex
	wide := in.prefix&wideVectors != 0
	if in.Map == 0x11 && in.Op == 0x77 && !wide {
		v.Name, v.Size = "vzeroupper", 32
		v.Dst.Operand, v.Src.Operand, v.Third.Operand = none, none, none
		return v, true
	}
	if !in.HasModRM {
		return v, false
	}
	if space == 1 && in.Op == 0xae {
		return e.control(v)
	}
	key := vectorKey{space, uint8(impliedPrefix(in)), in.Op}
	if in.Rep != 0 && !vex { // 66 is not a part of the opcode then
		key.prefix = map[byte]uint8{0xf3: 2, 0xf2: 3}[in.Rep]
	}
	f, ok := vectorForms()[key]
	if name := shiftNames[[2]uint8{in.Op, in.ModRM >> 3 & 7}]; name != "" && key.prefix == 1 &&
		space == 1 {
		f, ok = vectorForm{name: name, at: "VM-"}, in.ModRM>>6 == 3
	}
	if fused := e.fusedForm(space, key.prefix); fused.name != "" {
		f, ok = fused, true
	}
	if !ok || f.vex && !vex || f.old && vex || vex && f.width > 0 && (f.width == 2) != wide {
		return v, false
	}
	return e.vectorOf(f, v, wide)
}

// fusedKinds are the fused multiplications and additions, by the low bits of the opcode from 6 on.
var fusedKinds = []string{"maddsub", "msubadd", "madd", "madd", "msub", "msub", "nmadd", "nmadd",
	"nmsub", "nmsub"}

// fusedForm is the form of a fused multiplication and addition, whose Dst is the third operand that
// it has; its name is empty for others.
func (e *Effects) fusedForm(space, prefix uint8) (f vectorForm) {
	in := &e.in
	order := map[uint8]string{0x90: "132", 0xa0: "213", 0xb0: "231"}[in.Op&0xf0]
	kind := int(in.Op&15) - 6
	if in.Map != 0x12 || space != 2 || prefix != 1 || order == "" || kind < 0 {
		return f
	}
	double := in.Rex&8 != 0
	suffix := map[bool]string{false: "s", true: "d"}[double]
	f = vectorForm{at: "RVM", vex: true}
	if kind >= 2 && kind&1 == 1 {
		suffix = "s" + suffix
		if f.size = 4; double {
			f.size = 8
		}
	} else {
		suffix = "p" + suffix
	}
	f.name = "vf" + fusedKinds[kind] + order + suffix
	return f
}

// vectorOf fills in the operands that a form names.
func (e *Effects) vectorOf(f vectorForm, v VectorEffects, wide bool) (VectorEffects, bool) {
	in := &e.in
	reg, rm, imm := in.Operands(e.code, 0)
	if n := len(e.code) - imm; n == 1 {
		v.Imm = e.code[imm]
	}
	whole := uint8(16)
	if wide {
		whole = 32
	}
	v.Name, v.Size = f.name, f.size
	general := uint8(4)
	if f.wide && in.Rex&8 != 0 {
		general = 8
	}
	if v.Size == 0 {
		v.Size = whole
	}
	read := f.read
	switch {
	case read == 0:
		read = v.Size
	case read >= half:
		read = whole >> (read - half + 1)
	}
	place := func(at byte, size uint8) VectorOperand {
		o := VectorOperand{Operand: none}
		switch at {
		case 'R':
			o.Reg, o.Vector = reg, true
		case 'M':
			o.Operand, o.Vector = rm, !rm.Mem
		case 'V':
			o.Vector = true
			switch o.Reg = reg; {
			case in.Map >= 0x10:
				o.Reg = int8(in.vvvv)
			case f.at == "VM-":
				o.Reg = rm.Reg
			}
		case 'G':
			o.Reg = reg
		case 'E':
			o.Operand = rm
		default:
			return o
		}
		o.Size = size
		return o
	}
	if f.at == "VM-" { // a shift by an immediate
		v.Dst, v.Third = place('V', whole), place('M', whole)
		v.Src = VectorOperand{Operand: none}
		return v, true
	}
	v.Dst, v.Third, v.Src = place(f.at[0], v.Size), place(f.at[1], v.Size), place(f.at[2], read)
	e.generalParts(f, &v, general)
	return e.registerForms(f, v), true
}

// generalParts gives general registers, and memory in their place, their widths.
func (e *Effects) generalParts(f vectorForm, v *VectorEffects, general uint8) {
	switch {
	case f.wide && f.at[0] == 'G':
		v.Dst.Size = general
	case f.at[0] == 'G': // movmsk, pextrw
		v.Dst.Size = 4
	case f.wide && f.at[2] == 'E':
		v.Src.Size = general
		if f.size == 0 {
			v.Size, v.Dst.Size = general, general
		}
	case f.wide && f.at[0] == 'E':
		v.Dst.Size, v.Size = general, general
		if f.read == 0 {
			v.Src.Size = general
		}
	case f.at[0] == 'E' && !v.Dst.Mem:
		v.Dst.Size = 4
	case f.wide:
		v.Name += map[uint8]string{4: "d", 8: "q"}[general]
	}
	if f.at[0] == 'E' && !v.Dst.Mem && v.Dst.Size < 4 {
		v.Dst.Size = 4
	}
}

// registerForms is for the moves that are others between registers.
func (e *Effects) registerForms(f vectorForm, v VectorEffects) VectorEffects {
	in := &e.in
	register := in.ModRM>>6 == 3
	switch {
	case f.name == "movlow" && register:
		v.Name = "movhighlow"
		v.Src.Size = 16
	case f.name == "movzero" && register && in.Op == 0x10, f.name == "movout" && register &&
		in.Op == 0x11:
		v.Name, v.Third = "merge", v.Dst
		if in.Map >= 0x10 {
			v.Third.Reg = int8(in.vvvv)
		}
	case f.name == "movq" && register:
		v.Name = "movzero"
	case f.name == "movq":
		v.Name = "movout"
	case f.name == "movddup" && v.Size == 16:
		v.Src.Size = 8
	case f.name == "insertps" && !register:
		v.Src.Size = 4
	}
	return v
}

// control is for ldmxcsr and stmxcsr.
func (e *Effects) control(v VectorEffects) (VectorEffects, bool) {
	_, rm, _ := e.in.Operands(e.code, 0)
	rm.Size = 4
	group := e.in.ModRM >> 3 & 7
	v.Size, v.Clears = 4, false
	v.Dst, v.Third, v.Src = VectorOperand{Operand: none}, VectorOperand{Operand: none},
		VectorOperand{Operand: none}
	switch {
	case !rm.Mem || e.in.Rep != 0 || e.in.OpSize:
	case group == 2:
		v.Name, v.Src.Operand = "ldmxcsr", rm
	case group == 3:
		v.Name, v.Dst.Operand = "stmxcsr", rm
	}
	return v, v.Name != ""
}

// x87Sizes are how many bytes x87 instructions have in memory, by the low bits of the opcode and
// the reg field.
var x87Sizes = [8][8]uint8{
	{4, 4, 4, 4, 4, 4, 4, 4}, {4, 0, 4, 4, 28, 2, 28, 2}, {4, 4, 4, 4, 4, 4, 4, 4},
	{4, 4, 4, 4, 0, 10, 0, 10}, {8, 8, 8, 8, 8, 8, 8, 8}, {8, 8, 8, 8, 108, 0, 108, 2},
	{2, 2, 2, 2, 2, 2, 2, 2}, {2, 2, 2, 2, 10, 8, 10, 8},
}

// MemorySize returns how many bytes the memory operand has, also where its Size does not say so; 0
// if there is none, or it is not known.
func (e *Effects) MemorySize() uint8 {
	switch a := e.Address(); {
	case !a.Mem || a.Size > 0:
		return a.Size
	case e.Operation == X87:
		return x87Sizes[e.in.Op&7][e.in.ModRM>>3&7]
	}
	v, ok := e.Vectors()
	for _, o := range [2]*VectorOperand{&v.Dst, &v.Src} {
		if ok && o.Mem {
			return o.Size
		}
	}
	return 0
}
