package machine

// An Op is what an instruction computes. Its number is stored in files: new ones are appended, and
// none is ever changed or used again. What an instruction does with an Op is stored with it, by
// number: it never changes either, but for what turns out to differ from the processor.
type Op uint16

// The operations. Dst, Src and Third are the operands of an Insn; an immediate is one of class
// Immediate.
const (
	// Opaque is what is not emulated, for a Cause: what it writes is unknown behind it. See
	// Insn.Opaque.
	Opaque Op = iota
	NoOp
	Mov        // Dst = Src, zeroes above
	MovSX      // Dst = Src, its sign above
	MovBE      // Dst = Src, bytes reversed
	Lea        // Dst = the address of Src
	Xchg       // Dst, Src = Src, Dst
	Push       // Src
	Pop        // Dst
	Add        // Dst += Src
	Or         //
	Adc        //
	Sbb        //
	And        //
	Sub        //
	Xor        //
	Cmp        // flags of Dst - Src
	Test       // flags of Dst & Src
	Inc        // Dst
	Dec        //
	Neg        //
	Not        //
	Rol        // Dst by Src, of one byte
	Ror        //
	Rcl        //
	Rcr        //
	Shl        //
	Shr        //
	Sar        //
	Shld       // Dst, filled from Src, by Third
	Shrd       //
	IMul       // Dst = Src * Third
	MulWide    // RDX:RAX = RAX * Src, of bytes AX = AL * Src
	IMulWide   // the same, signed
	Div        // RAX, RDX = RDX:RAX by Src, of bytes AL, AH = AX by Src
	IDiv       //
	SignFill   // Dst = the sign of Src
	MovIf      // Dst = Src if Condition holds
	SetIf      // Dst = 1 if Condition holds, else 0
	BSwap      // Dst
	Bt         // CF = the bit of Dst that Src names: in memory, Src of a register reaches far
	Bts        //
	Btr        //
	Btc        //
	Bsf        // Dst, of Src
	Bsr        //
	PopCnt     //
	TzCnt      //
	LzCnt      //
	CmpXchg    // Dst, with RAX and Src
	XAdd       // Dst, Src
	CmpXchg2   // Dst, of twice Size, with RDX:RAX and RCX:RBX
	Crc32      // Dst, of Src
	AdcX       // Dst += Src + CF
	AdoX       // Dst += Src + OF
	AndN       // Dst = ^Third & Src
	BExtr      // Dst, of Src by Third
	Blsi       // Dst, of Src
	BlsMsk     //
	Blsr       //
	Bzhi       // Dst, of Src by Third
	PDep       // Dst, of Third by Src
	PExt       //
	MulX       // Dst, Third = high, low half of RDX * Src
	Rorx       // Dst, of Src by Third: no flags
	Sarx       //
	Shlx       //
	Shrx       //
	Movs       // from Src, at RSI and a segment, to RDI
	Cmps       //
	Stos       //
	Lods       //
	Scas       //
	Leave      //
	PushF      //
	PopF       //
	LahF       //
	SahF       //
	ClC        //
	StC        //
	CmC        //
	ClD        //
	StD        //
	JumpIf     // by Condition, to Imm behind the instruction
	JumpCX     // if RCX is 0, or ECX by Size
	Loop       // RCX--, unless it is 0 then
	LoopEqual  // and ZF
	LoopUneven // and not ZF
	Jump       // to Src; an immediate is a distance from the instruction's end
	Call       // as Jump
	Return     // and pops Imm bytes more

	// Vectors have Size bytes, in elements of Lane bytes. Their results are from Third and Src in
	// that order; of fewer than 16 bytes, they are the lowest of what is else Third.
	VMov          // Dst = Src
	VMovZero      // Dst = Src, zeroes above
	VMovOut       // Dst, which is no vector, = Src
	VMerge        // Dst = Src, Third above
	VMovHigh      // the second 8 bytes = Src
	VMovHighLow   // the first 8 bytes = the second of Src
	VMovHighOut   // Dst, in memory, = the second 8 bytes of Src
	VDup          // each second element twice: of Src, from Imm on
	VBroadcast    // Src in each element
	VZeroUpper    // of all registers
	VExtract      // Dst = element Imm of Src
	VInsert       // element Imm = Src
	VMoveMask     // Dst, a general register, = the signs of Src
	VShuffle      // four elements in 16 bytes, by Imm
	VShuffleLow   // four of 2 bytes, the others as they are
	VShuffleHigh  //
	VShuffleTwo   // of Third, then of Src, by Imm
	VPermilPD     // by bits of Imm
	VPermQ        // four elements, by Imm
	VPermD        // of Src, by Third
	VPerm2        // halves, by Imm
	VUnpackLow    //
	VUnpackHigh   //
	VAlign        // Imm bytes on in Third and Src
	VShlBytes     // Third by Imm
	VShrBytes     //
	VBlend        // by bits of Imm
	VShuffleBytes // of Third, by Src
	VExtendZ      // elements of Imm bytes
	VExtendS      //
	VAdd          //
	VSub          //
	VAddS         // saturated, signed
	VAddU         // unsigned
	VSubS         //
	VSubU         //
	VMulLow       //
	VMulHigh      //
	VMulHighU     //
	VMulHighRound //
	VMulWideU     // of the lower halves
	VMulWide      //
	VMulAdd       // of halves, added
	VMulAddU      // unsigned of Third, signed of Src
	VSad          // of bytes
	VAvg          //
	VMinS         //
	VMinU         //
	VMaxS         //
	VMaxU         //
	VAbs          // Src
	VSign         //
	VAnd          //
	VAndN         // ^Third & Src
	VOr           //
	VXor          //
	VCmpEq        //
	VCmpGt        //
	VShl          // Third by Src, or Imm
	VShr          //
	VSar          //
	VShlEach      //
	VShrEach      //
	VSarEach      //
	VPackS        // from elements of Lane bytes
	VPackU        //
	VHAdd         //
	VHSub         //
	VHAddS        //
	VHSubS        //
	VTest         // flags of Dst and Src
	FAdd          // of floating-point numbers
	FSub          //
	FMul          //
	FDiv          //
	FMin          //
	FMax          //
	FSqrt         // Src
	FCmp          // by Imm
	FCompare      // flags of Dst and Src
	FRound        // Src, by Imm
	FAddSub       //
	FHAdd         //
	FHSub         //
	FFromInt      // Src, of its Size, or of vectors of elements of Imm bytes
	FToInt        // truncated; Dst is a general register
	FToIntRound   //
	FToFloat      // from elements of Imm bytes
	VFromInt      // from elements of 4 bytes
	VToInt        // to elements of 4 bytes, from Imm, truncated
	VToIntRound   //
	LoadMXCSR     // of Src
	StoreMXCSR    // of which exceptions there were is not known
	VBlendBy      // by the signs of the elements of register Imm
	VInsertFloat  // element Imm>>4&3 = element Imm>>6 of Src; zeroes by the bits of Imm
	FMulAdd       // by Imm, of Dst, Third and Src, rounded once

	ops

	firstVector = VMov
)

// A Class says what an operand is.
type Class uint8

// The classes. Their numbers are stored in files, as those of Op are.
const (
	None Class = iota
	General
	High      // the second byte of one of the first four general registers
	Immediate // the instruction's Imm
	Mem
	Vector

	classes
)

// The registers, as the hardware numbers them, and what else an address may be made of.
const (
	RAX = iota
	RCX
	RDX
	RBX
	RSP
	RBP
	RSI
	RDI

	FS   = 16 // the base of the segment; no instruction names it as an operand
	GS   = 17
	Next = 18 // the address behind the instruction
	Zero = 19 // for no register at all

	registers = 20
)

// CalleeSaved has a bit for each general register that code which was called leaves as it was, by
// the System V ABI.
const CalleeSaved = 1<<RBX | 1<<RSP | 1<<RBP | 0xf<<12

// An Operand is where an instruction finds or leaves a value. Its Size is in bytes.
type Operand struct {
	Class   Class
	Size    uint8
	Reg     uint8 // the register; of memory, the base of its address
	Index   uint8 // a register
	Scale   uint8 // by how many bits the index is shifted
	Segment uint8 // FS, GS or Zero
	Short   bool  // the address has 32 bits, before the segment is added
	Disp    int64
}

// The ways to repeat a string instruction.
const (
	Once = iota
	RepeatEqual
	RepeatUnequal
)

// An Insn is a decoded instruction: it says what to do without the instruction's bytes.
type Insn struct {
	Op        Op
	Len       uint8 // bytes of code
	Size      uint8 // bytes of the operation
	Repeat    uint8
	Condition uint8 // as it is encoded: the lowest bit negates it
	Cause     Cause // of Opaque
	Locked    bool  // atomic: other threads may have their share in the result
	Lane      uint8 // bytes of an element of vectors
	Clears    bool  // what is above the result in a vector register becomes 0

	Dst, Src, Third Operand
	Imm             int64
}

// A Cause is why an instruction is Opaque. It is stored in files, as Op is.
type Cause uint8

// The causes.
const (
	NotKnown     Cause = iota // not known in full
	X87                       // on the stack of the floating-point unit
	Vectors                   // a vector instruction that is not emulated
	Masks                     // AVX-512
	State                     // saves or restores the processor's state
	Identity                  // cpuid
	Clock                     // rdtsc
	Random                    // rdrand, rdseed
	System                    // enters the kernel
	Transactions              //
	Segments                  // of segment registers
	Addresses                 // a form of address that is not emulated
	Stops                     // does not go on: ud2, hlt, int3

	causes
)

var causeNames = [causes]string{
	"not known", "x87", "vector", "AVX-512", "state", "cpuid", "rdtsc", "random", "system call",
	"transaction", "segment", "address", "trap",
}

// String is the cause in one or two words.
func (c Cause) String() string {
	if c >= causes {
		c = NotKnown
	}
	return causeNames[c]
}

// A Set is a set of registers and flags: what an instruction writes.
type Set struct {
	General uint16
	Flags   uint8
	Vectors uint16
	// Memory says that memory which no operand names may be written.
	Memory bool
}

const (
	setFlags   = 16
	setVectors = 24
	setMemory  = 40
)

// OpaqueInsn is an instruction that is not emulated, and writes what is in the set; also Dst, if
// that is given.
func OpaqueInsn(length uint8, cause Cause, writes Set, dst Operand) Insn {
	in := Insn{Op: Opaque, Len: length, Cause: cause, Dst: dst}
	in.Imm = int64(writes.General) | int64(writes.Flags&AllFlags)<<setFlags |
		int64(writes.Vectors)<<setVectors
	if writes.Memory {
		in.Imm |= 1 << setMemory
	}
	return in
}

// Opaque is what an opaque instruction writes besides Dst.
func (in *Insn) Opaque() Set {
	return Set{
		General: uint16(in.Imm), Flags: uint8(in.Imm>>setFlags) & AllFlags,
		Vectors: uint16(in.Imm >> setVectors), Memory: in.Imm>>setMemory&1 != 0,
	}
}
