package x86

// What is here is known of an instruction without its operands, at a few nanoseconds.

// IsMemory reports whether the ModRM byte names memory, also one of which it uses the address
// alone.
func (in *Inst) IsMemory() bool { return in.HasModRM && in.ModRM>>6 != 3 }

// IsRIPRelative reports whether the instruction has a rip-relative memory operand.
func (in *Inst) IsRIPRelative() bool { return in.HasModRM && in.ModRM&0xc7 == 5 }

// MayBeOnStack reports whether the base of the memory operand may be rsp or rbp: it is not known of
// r12 and r13, nor where a SIB byte follows.
func (in *Inst) MayBeOnStack() bool {
	base := in.ModRM & 7
	return in.IsMemory() && (base == byte(RSP) || base == byte(RBP))
}

// LeavesRSP reports of most instructions that leave rsp alone that they do: it appears neither in
// the ModRM byte nor is it moved by the opcode's nature.
func (in *Inst) LeavesRSP() bool {
	return in.HasModRM && in.Map <= 1 && in.Op != 0xff && in.Op != 0x8f &&
		in.ModRM>>3&7 != byte(RSP) &&
		in.ModRM&0xc7 != 0xc0|byte(RSP)
}

// NoCondition is the condition of what has none.
const NoCondition = 16

// Condition returns the condition code of a conditional jump, else NoCondition. The lowest bit
// negates what the others say.
func (in *Inst) Condition() uint8 {
	if in.Kind != Jcc {
		return NoCondition
	}
	return in.Op & 15
}

// The condition codes that others ask about, and their negations.
const (
	Below        = 2
	AboveOrEqual = 3
	Equal        = 4
	NotEqual     = 5
	BelowOrEqual = 6
	Above        = 7
)

// HasImmediate reports whether the last operand is a constant in the instruction.
func (in *Inst) HasImmediate() bool {
	switch _, f := meaningOf(in); f {
	case formNI, formMI, formM1, formAI, formOI, formRMI, formMRI:
		return true
	}
	return false
}

// IsBreakpoint reports whether the instruction is int3.
func (in *Inst) IsBreakpoint() bool { return in.Map == 0 && in.Op == 0xcc }

// IsEndbr64 reports whether the instruction marks where indirect branches may lead.
func (in *Inst) IsEndbr64() bool {
	return in.Map == 1 && in.Op == 0x1e && in.ModRM == 0xfa && in.Rep == 0xf3 && in.Len == 4
}

// IsLongNoOp reports whether the instruction is a nop of several bytes, as only assemblers make it,
// in front of labels and not behind them.
func (in *Inst) IsLongNoOp() bool { return in.Map == 1 && in.Op == 0x1f }

// IsFiller reports whether a byte of code is an instruction that stands between functions: nop,
// int3.
func IsFiller(b byte) bool { return b == 0x90 || b == 0xcc }

// Unlocked decodes what is behind the lock prefix that code begins with; ok is false if it does
// not.
func Unlocked(code []byte) (in Inst, ok bool) {
	if len(code) == 0 || code[0] != 0xf0 {
		return Inst{}, false
	}
	return Decode(code[1:])
}

// MayFault reports whether an instruction other than a jump or a call reads or writes memory, but
// for a push or a pop, or divides.
func (in Inst) MayFault() bool {
	if in.Kind != Other {
		return false
	}
	switch in.Operation() {
	case Lea:
		return false
	case Div, IDiv, Movs, Cmps, Stos, Lods, Scas:
		return true
	case Mov, Unknown: // of absolute addresses; ins, outs, xlat
		if in.Map == 0 && (in.Op>>2 == 0xa0>>2 || in.Op>>2 == 0x6c>>2 || in.Op == 0xd7) {
			return true
		}
	}
	return in.IsMemory()
}

// EachAddress calls back for each address that an instruction, behind which next is, names by a
// rip-relative operand or, where absolute is set, by an absolute displacement or an immediate.
func (in *Inst) EachAddress(code []byte, next uint64, absolute bool, visit func(addr uint64)) {
	if in.IsRIPRelative() {
		_, rm, _ := in.Operands(code, next)
		visit(uint64(rm.Disp))
	}
	if !absolute {
		return
	}
	if in.HasModRM && (in.ModRM>>6 == 0 && in.ModRM&7 == 4 || in.ModRM>>6 == 2) {
		_, rm, _ := in.Operands(code, next)
		visit(uint64(rm.Disp))
	}
	if value, n := in.AddressImmediate(code); n > 0 {
		visit(value)
		if n == 4 {
			visit(value & 0xffffffff)
		}
	}
}

// AddressImmediate returns the instruction's immediate, sign-extended, and its size in bytes where
// it can hold an address; 0 else.
func (in *Inst) AddressImmediate(code []byte) (value uint64, size int) {
	if in.Map != 0 || in.OpSize || len(code) < int(in.Len) {
		return 0, 0
	}
	switch op := in.Op; {
	case op&0xf8 == 0xb8 && in.Rex&8 != 0:
		size = 8
	case op&0xf8 == 0xb8, op == 0x68, op == 0x69, op == 0x81, op == 0xc7, op == 0xa9, op < 0x40 &&
		op&7 == 5:
		size = 4
	default:
		return 0, 0
	}
	n, _ := signed(code[int(in.Len)-size : in.Len])
	return uint64(n), size
}

// HasWideImmediate reports whether the instruction has a constant of 64 bits.
func (in *Inst) HasWideImmediate() bool {
	return in.Map == 0 && in.Op&0xf8 == 0xb8 && in.Rex&8 != 0
}

// IsRelative reports whether an instruction of the kind has its target in itself, as a distance.
func (k Kind) IsRelative() bool { return k == Jcc || k == Jmp || k == Call || k == Loop }

// SizeWithoutPadding is the size of code without what stands between functions: nops, int3 and
// zeros. Bytes that do not decode count.
func SizeWithoutPadding(code []byte) (bytes int) {
	for len(code) > 0 {
		n, isPadding := padding(code)
		if !isPadding {
			bytes += n
		}
		code = code[n:]
	}
	return bytes
}

// IsPadding reports whether code is nothing but what stands between functions. Cost: that of its
// first instruction, if that is none of these.
func IsPadding(code []byte) bool {
	for len(code) > 0 {
		n, isPadding := padding(code)
		if !isPadding {
			return false
		}
		code = code[n:]
	}
	return true
}

// padding is the length of the instruction that code begins with, and whether it stands between
// functions.
func padding(code []byte) (n int, is bool) {
	if code[0] == 0 {
		return 1, true
	}
	in, ok := Decode(code)
	return max(int(in.Len), 1),
		ok && (in.IsBreakpoint() || in.IsLongNoOp() || in.Operation() == NoOp && in.Map == 0)
}

// NextRelative returns where in code the next instruction of longRelative bytes or more may begin
// whose kind IsRelative, or the length of code. Prefixes may be passed over: what is behind them
// leads to the same place. It takes a nanosecond a byte, a small part of what decoding each takes.
func NextRelative(code []byte) int {
	for at := range len(code) - 1 {
		if mayBegin[code[at]]&mayGoOn[code[at+1]] != 0 && isRelative(code[at:]) {
			return at
		}
	}
	return len(code)
}

const longRelative = 5

// mayBegin has a bit for each way in which a long relative instruction may begin, by its first
// byte, and mayGoOn, by its second, for those that may go on so.
var mayBegin, mayGoOn = func() (first, second [256]uint8) {
	const distance, escaped, transaction, prefixed = 1, 2, 4, 8
	first[0x0f], first[0xc7] = escaped, transaction
	for c, a := range oneByte {
		second[c] = distance
		switch {
		case a&rel32 != 0:
			first[c] = distance
		case a&(rex|legacy) != 0: // several make a short one long
			first[c] = prefixed
			second[c] |= prefixed
		}
		if twoByte[c]&rel32 != 0 {
			second[c] |= escaped
		}
	}
	second[0xf8] |= transaction
	return first, second
}()

// isRelative says whether code may begin with a long relative instruction.
func isRelative(code []byte) bool {
	for at, c := range code {
		switch a := oneByte[c]; {
		case a&(rex|legacy) != 0:
			continue
		case a&rel8 != 0:
			return at+2 >= longRelative
		case a&rel32 != 0:
			return true
		case c == 0x0f:
			return at+1 < len(code) && twoByte[code[at+1]]&rel32 != 0
		}
		return c == 0xc7 && at+1 < len(code) && code[at+1] == 0xf8 // xbegin
	}
	return false
}
