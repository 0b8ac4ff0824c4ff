package machine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// Which of the fields of an Insn are stored, by the bits of a byte in front of them. The others are
// 0, an operand None.
const (
	hasDst = 1 << iota
	hasSrc
	hasThird
	hasImm
	hasRepeat
	hasCondition
	hasCause
	isLocked
)

// AppendInsn appends an instruction as files have it: the numbers of Op and of the operands'
// classes as varints, each field but those that are 0.
func AppendInsn(b []byte, in *Insn) []byte {
	b = binary.AppendUvarint(b, uint64(in.Op))
	fields := byte(0)
	for i, has := range [8]bool{in.Dst.Class != None, in.Src.Class != None,
		in.Third.Class != None, in.Imm != 0, in.Repeat != 0, in.Condition != 0, in.Cause != 0,
		in.Locked} {
		if has {
			fields |= 1 << i
		}
	}
	b = appendSized(append(b, fields), in.Len&15, in.Size)
	if in.Op >= firstVector {
		clears := byte(0)
		if in.Clears {
			clears = 0x80
		}
		b = append(b, in.Lane|clears)
	}
	for _, o := range [3]*Operand{&in.Dst, &in.Src, &in.Third} {
		if o.Class != None {
			b = appendOperand(b, o)
		}
	}
	if in.Imm != 0 {
		b = binary.AppendVarint(b, in.Imm)
	}
	for _, v := range [3]byte{in.Repeat, in.Condition, byte(in.Cause)} {
		if v != 0 {
			b = append(b, v)
		}
	}
	return b
}

// appendSized appends a number of four bits, and how many bytes something has.
func appendSized(b []byte, low, size uint8) []byte {
	if n := uint8(bits.TrailingZeros8(size)); size != 0 && size == 1<<n {
		return append(b, low|(n+1)<<4)
	}
	return append(b, low, size)
}

// isIndexed is a bit of an operand in memory whose address is more than a register and a number.
const isIndexed = 1 << 3

func appendOperand(b []byte, o *Operand) []byte {
	class := byte(o.Class)
	indexed := o.Class == Mem && (o.Index != Zero || o.Segment != Zero || o.Scale != 0 || o.Short)
	if indexed {
		class |= isIndexed
	}
	b = append(appendSized(b, class, o.Size), o.Reg)
	if indexed {
		short := byte(0)
		if o.Short {
			short = 1 << 2
		}
		b = append(b, o.Index, o.Segment, o.Scale|short)
	}
	if o.Class == Mem {
		b = binary.AppendVarint(b, o.Disp)
	}
	return b
}

var errCut = errors.New("it ends within an instruction")

// ParseInsn reads an instruction at the start of b, and returns what is behind it. It fails where
// that is cut, or is no instruction: what it returns can be stepped through.
func ParseInsn(b []byte) (in Insn, rest []byte, err error) {
	r := reader{rest: b}
	op := r.uvarint()
	fields := r.byte()
	in.Len, in.Size = r.sized()
	if op >= uint64(firstVector) {
		lane := r.byte()
		in.Lane, in.Clears = lane&0x7f, lane&0x80 != 0
	}
	for i, o := range [3]*Operand{&in.Dst, &in.Src, &in.Third} {
		if fields>>i&1 != 0 {
			r.operand(o)
		}
	}
	if fields&hasImm != 0 {
		in.Imm = r.varint()
	}
	if fields&hasRepeat != 0 {
		in.Repeat = r.byte()
	}
	if fields&hasCondition != 0 {
		in.Condition = r.byte()
	}
	if fields&hasCause != 0 {
		in.Cause = Cause(r.byte())
	}
	in.Locked = fields&isLocked != 0
	if r.cut {
		return Insn{}, nil, errCut
	}
	if op >= uint64(ops) {
		return Insn{}, nil, fmt.Errorf("it has an instruction of number %d, which a later "+
			"version may know", op)
	}
	in.Op = Op(op)
	if err := in.check(); err != nil {
		return Insn{}, nil, err
	}
	return in, r.rest, nil
}

// A reader takes from the start of bytes, zeroes once it is at their end.
type reader struct {
	rest []byte
	cut  bool
}

func (r *reader) byte() byte {
	if len(r.rest) == 0 {
		r.cut = true
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.rest)
	return take(r, v, n)
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.rest)
	return take(r, v, n)
}

func take[T any](r *reader, v T, n int) T {
	if n <= 0 {
		r.cut = true
		r.rest = nil
		var none T
		return none
	}
	r.rest = r.rest[n:]
	return v
}

// sized reads what appendSized has appended.
func (r *reader) sized() (low, size uint8) {
	b := r.byte()
	switch n := b >> 4; {
	case n == 0:
		size = r.byte()
	case n <= 8:
		size = 1 << (n - 1)
	default:
		size = 255 // which nothing has
	}
	return b & 15, size
}

func (r *reader) operand(o *Operand) {
	class, size := r.sized()
	*o = Operand{Class: Class(class &^ isIndexed), Size: size, Reg: r.byte()}
	switch {
	case o.Class == None:
		*o = Operand{}
	case o.Class == Mem:
		o.Index, o.Segment = Zero, Zero
		if class&isIndexed != 0 {
			o.Index, o.Segment = r.byte(), r.byte()
			scale := r.byte()
			o.Scale, o.Short = scale&^(1<<2), scale&(1<<2) != 0
		}
		o.Disp = r.varint()
	}
}

// check says why an instruction is none that Step may be given.
func (in *Insn) check() error {
	switch {
	case in.Len == 0 || in.Len > 15:
		return fmt.Errorf("it has an instruction of %d bytes", in.Len)
	case in.Repeat > RepeatUnequal || in.Condition > 15 || in.Cause >= causes:
		return fmt.Errorf("it has an instruction with repeat %d, condition %d, cause %d",
			in.Repeat, in.Condition, in.Cause)
	case !in.Op.allows(in.Size) || in.Op >= firstVector && !in.vectorsFit():
		return fmt.Errorf("it has instruction %d of %d bytes", in.Op, in.Size)
	}
	for _, o := range [3]*Operand{&in.Dst, &in.Src, &in.Third} {
		if !o.valid() || o.Class != None && !in.Op.allows(o.Size) {
			return fmt.Errorf("it has instruction %d with operand %+v", in.Op, *o)
		}
	}
	return nil
}

// allows reports whether an operation, or an operand of one, may have so many bytes.
func (op Op) allows(size uint8) bool {
	most := uint8(8)
	switch {
	case op == Opaque || op == NoOp:
		return size <= 128
	case op >= firstVector:
		most = 32
	}
	return size > 0 && size <= most && size&(size-1) == 0
}

// vectorsFit reports whether elements are a part of vectors, and registers in their places.
func (in *Insn) vectorsFit() bool {
	lane := in.Lane
	return lane > 0 && lane <= 16 && lane&(lane-1) == 0 &&
		(in.Op < VAdd || lane <= 8) && in.Imm >= 0 && in.Imm < 256
}

func (o *Operand) valid() bool {
	switch o.Class {
	case None, Immediate:
		return true
	case General, Vector:
		return o.Reg < 16
	case High:
		return o.Reg < 4 && o.Size == 1
	case Mem:
		return o.Reg < registers && o.Index < registers && o.Scale <= 3 &&
			o.Segment < registers
	}
	return false
}
