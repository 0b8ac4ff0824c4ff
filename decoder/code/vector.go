package code

import (
	"strings"
	"sync"

	"wpptrace/compress/wet/machine"
	"wpptrace/loader/x86"
)

// A vectorOp is what a vector instruction is to package machine. Lane 0 stands for the whole Size.
type vectorOp struct {
	op   machine.Op
	lane uint8
	imm  int64 // -1: what the instruction says
}

// vectorOps are the vector instructions that are emulated, by name.
var vectorOps = sync.OnceValue(vectorOpMap)

func vectorOpMap() map[string]vectorOp {
	t := map[string]vectorOp{}
	set := func(op machine.Op, lane uint8, imm int64, names ...string) {
		for _, name := range names {
			t[name] = vectorOp{op, lane, imm}
		}
	}
	// sizes sets a name for each of the letters b w d q behind it
	sizes := func(op machine.Op, name, letters string) {
		for _, l := range letters {
			set(op, uint8(1)<<strings.IndexRune("bwdq", l), 0, name+string(l))
		}
	}
	floats := func(op machine.Op, imm int64, name, suffixes string) {
		for _, s := range strings.Fields(suffixes) {
			lane := uint8(4)
			if strings.HasSuffix(s, "d") {
				lane = 8
			}
			set(op, lane, imm, name+s)
		}
	}
	set(machine.LoadMXCSR, 4, 0, "ldmxcsr")
	set(machine.StoreMXCSR, 4, 0, "stmxcsr")
	set(machine.VMov, 1, 0, "mov")
	set(machine.VMovZero, 1, 0, "movzero")
	set(machine.VMovOut, 1, 0, "movout")
	set(machine.VMerge, 1, 0, "merge", "movlow")
	set(machine.VMovHigh, 1, 0, "movhigh")
	set(machine.VMovHighLow, 1, 0, "movhighlow")
	set(machine.VMovHighOut, 1, 0, "movhighout")
	set(machine.VDup, 8, 0, "movddup")
	set(machine.VDup, 4, 0, "movsldup")
	set(machine.VDup, 4, 1, "movshdup")
	set(machine.VZeroUpper, 1, 0, "vzeroupper")
	set(machine.VBroadcast, 1, 0, "broadcast1")
	set(machine.VBroadcast, 2, 0, "broadcast2")
	set(machine.VBroadcast, 4, 0, "broadcast4")
	set(machine.VBroadcast, 8, 0, "broadcast8")
	set(machine.VBroadcast, 16, 0, "broadcast16")
	set(machine.VExtract, 0, -1, "pextr")
	set(machine.VExtract, 16, -1, "vextract")
	set(machine.VInsert, 0, -1, "pinsr")
	set(machine.VInsert, 16, -1, "vinsert")
	set(machine.VMoveMask, 1, 0, "pmovmskb")
	floats(machine.VMoveMask, 0, "movmsk", "ps pd")
	set(machine.VShuffle, 4, -1, "pshufd")
	set(machine.VShuffleLow, 2, -1, "pshuflw")
	set(machine.VShuffleHigh, 2, -1, "pshufhw")
	floats(machine.VShuffleTwo, -1, "shuf", "ps pd")
	set(machine.VPermilPD, 8, -1, "vpermilpd")
	set(machine.VPermQ, 8, -1, "vpermq")
	set(machine.VPermD, 4, 0, "vpermd")
	set(machine.VPerm2, 16, -1, "vperm2")
	floats(machine.VUnpackLow, 0, "unpckl", "ps pd")
	floats(machine.VUnpackHigh, 0, "unpckh", "ps pd")
	for lane, pair := range map[uint8]string{1: "bw", 2: "wd", 4: "dq", 8: "qdq"} {
		set(machine.VUnpackLow, lane, 0, "punpckl"+pair)
		set(machine.VUnpackHigh, lane, 0, "punpckh"+pair)
	}
	set(machine.VAlign, 1, -1, "palignr")
	set(machine.VShlBytes, 1, -1, "pslldq")
	set(machine.VShrBytes, 1, -1, "psrldq")
	floats(machine.VBlend, -1, "blend", "ps pd")
	set(machine.VBlend, 2, -1, "pblendw")
	set(machine.VShuffleBytes, 1, 0, "pshufb")
	set(machine.VBlendBy, 1, -1, "pblendvb")
	floats(machine.VBlendBy, -1, "blendv", "ps pd")
	set(machine.VInsertFloat, 4, -1, "insertps")
	for i, pair := range []string{"bw", "bd", "bq", "wd", "wq", "dq"} {
		from, to := []int64{1, 1, 1, 2, 2, 4}[i], []uint8{2, 4, 8, 4, 8, 8}[i]
		set(machine.VExtendZ, to, from, "pmovzx"+pair)
		set(machine.VExtendS, to, from, "pmovsx"+pair)
	}
	sizes(machine.VAdd, "padd", "bwdq")
	sizes(machine.VSub, "psub", "bwdq")
	sizes(machine.VAddS, "padds", "bw")
	sizes(machine.VAddU, "paddus", "bw")
	sizes(machine.VSubS, "psubs", "bw")
	sizes(machine.VSubU, "psubus", "bw")
	set(machine.VMulLow, 2, 0, "pmullw")
	set(machine.VMulLow, 4, 0, "pmulld")
	set(machine.VMulHigh, 2, 0, "pmulhw")
	set(machine.VMulHighU, 2, 0, "pmulhuw")
	set(machine.VMulHighRound, 2, 0, "pmulhrsw")
	set(machine.VMulWideU, 8, 0, "pmuludq")
	set(machine.VMulWide, 8, 0, "pmuldq")
	set(machine.VMulAdd, 4, 0, "pmaddwd")
	set(machine.VMulAddU, 2, 0, "pmaddubsw")
	set(machine.VSad, 8, 0, "psadbw")
	sizes(machine.VAvg, "pavg", "bw")
	sizes(machine.VMinS, "pmins", "bwd")
	sizes(machine.VMinU, "pminu", "bwd")
	sizes(machine.VMaxS, "pmaxs", "bwd")
	sizes(machine.VMaxU, "pmaxu", "bwd")
	sizes(machine.VAbs, "pabs", "bwd")
	sizes(machine.VSign, "psign", "bwd")
	set(machine.VAnd, 4, 0, "and")
	set(machine.VAndN, 4, 0, "andn")
	set(machine.VOr, 4, 0, "or")
	set(machine.VXor, 4, 0, "xor")
	sizes(machine.VCmpEq, "pcmpeq", "bwdq")
	sizes(machine.VCmpGt, "pcmpgt", "bwdq")
	for name, op := range map[string]machine.Op{"psll": machine.VShl, "psrl": machine.VShr,
		"psra": machine.VSar} {
		for lane, letter := range map[uint8]string{2: "w", 4: "d", 8: "q"} {
			set(op, lane, -1, name+letter)
		}
	}
	sizes(machine.VShlEach, "vpsllv", "dq")
	sizes(machine.VShrEach, "vpsrlv", "dq")
	sizes(machine.VSarEach, "vpsrav", "d")
	set(machine.VPackS, 2, 0, "packsswb")
	set(machine.VPackS, 4, 0, "packssdw")
	set(machine.VPackU, 2, 0, "packuswb")
	set(machine.VPackU, 4, 0, "packusdw")
	sizes(machine.VHAdd, "phadd", "wd")
	sizes(machine.VHSub, "phsub", "wd")
	set(machine.VHAddS, 2, 0, "phaddsw")
	set(machine.VHSubS, 2, 0, "phsubsw")
	set(machine.VTest, 8, 0, "ptest")
	for name, op := range map[string]machine.Op{"add": machine.FAdd, "sub": machine.FSub,
		"mul": machine.FMul, "div": machine.FDiv, "min": machine.FMin, "max": machine.FMax,
		"sqrt": machine.FSqrt} {
		floats(op, 0, name, "ps pd ss sd")
	}
	floats(machine.FCmp, -1, "cmp", "ps pd ss sd")
	floats(machine.FRound, -1, "round", "ps pd ss sd")
	floats(machine.FCompare, 0, "ucomi", "ss sd")
	floats(machine.FCompare, 0, "comi", "ss sd")
	floats(machine.FAddSub, 0, "addsub", "ps pd")
	floats(machine.FHAdd, 0, "hadd", "ps pd")
	floats(machine.FHSub, 0, "hsub", "ps pd")
	floats(machine.FFromInt, 0, "cvtsi2", "ss sd")
	set(machine.FToInt, 4, 0, "cvttss2si")
	set(machine.FToInt, 8, 0, "cvttsd2si")
	set(machine.FToIntRound, 4, 0, "cvtss2si")
	set(machine.FToIntRound, 8, 0, "cvtsd2si")
	set(machine.FToFloat, 8, 4, "cvtps2pd", "cvtss2sd")
	set(machine.FToFloat, 4, 8, "cvtpd2ps", "cvtsd2ss")
	for kind, signs := range map[string]int64{"madd": 0, "msub": machine.NegatesAddend,
		"nmadd": machine.NegatesProduct, "nmsub": machine.NegatesProduct | machine.NegatesAddend,
		"maddsub": machine.Alternates, "msubadd": machine.Alternates | machine.NegatesAddend} {
		for order, places := range map[string]int64{"132": machine.DstTimesSrc,
			"213": machine.ThirdTimesDst, "231": machine.ThirdTimesSrc} {
			floats(machine.FMulAdd, places|signs, "vf"+kind+order, "ps pd ss sd")
		}
	}
	set(machine.VFromInt, 4, 4, "cvtdq2ps")
	set(machine.VFromInt, 8, 4, "cvtdq2pd")
	set(machine.VToInt, 4, 4, "cvttps2dq")
	set(machine.VToInt, 4, 8, "cvttpd2dq")
	set(machine.VToIntRound, 4, 4, "cvtps2dq")
	set(machine.VToIntRound, 4, 8, "cvtpd2dq")
	return t
}

// vector returns a vector instruction, or why it is opaque.
func (t *translator) vector() (machine.Insn, machine.Cause) {
	if t.in.Map >= 0x20 && t.in.Map < 0x30 {
		return machine.Insn{}, machine.Masks
	}
	v, known := t.Vectors()
	op, emulates := vectorOps()[v.Name]
	if !known || !emulates {
		return machine.Insn{}, causes[t.Operation]
	}
	o := machine.Insn{Op: op.op, Len: t.in.Len, Size: v.Size, Lane: op.lane, Imm: op.imm,
		Clears: v.Clears, Dst: t.vectorOperand(&v.Dst), Src: t.vectorOperand(&v.Src),
		Third: t.vectorOperand(&v.Third)}
	if op.imm < 0 {
		o.Imm = int64(v.Imm)
	}
	if op.op == machine.VBlendBy { // without VEX it is register 0, and there is no immediate
		o.Imm >>= 4
	}
	if op.op == machine.FCmp && !v.Clears { // VEX has more predicates
		o.Imm &= 7
	}
	switch {
	case op.lane > 0:
	case op.op == machine.VInsert:
		o.Lane = v.Src.Size
	default:
		o.Lane = v.Size
	}
	if op.op == machine.FRound && v.Imm&4 != 0 { // as MXCSR says, which is the nearest here
		o.Imm = 0
	}
	return o, emulated
}

func (t *translator) vectorOperand(o *x86.VectorOperand) machine.Operand {
	m := t.operand(&o.Operand)
	if o.Vector {
		m.Class = machine.Vector
	}
	m.Size = o.Size
	if m.Class == machine.None {
		m = machine.Operand{}
	}
	return m
}
