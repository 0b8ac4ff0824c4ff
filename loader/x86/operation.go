package x86

// An Operation is what an instruction computes, whatever bytes encode it. Dst, Src and Third are
// the operands in Effects; where Third is none and HasImm is set, the immediate stands for the
// last.
type Operation uint8

// The operations. Their operands are those of the manuals, but for what is said here.
const (
	Unknown Operation = iota // not known in full: what Effects say is more than what happens
	// of vector or mask registers; operands are general registers and memory
	Vector
	X87   // of the x87 stack, which operands leave out
	State // saves or restores processor state in memory: xsave, fxrstor ...
	// names operands perhaps, but uses none; fences and prefetches too
	NoOp
	Mov      // Dst = Src, or the immediate
	MovZX    // Dst = Src, zeroes above
	MovSX    // Dst = Src, its sign above; cbw, cwde, cdqe too
	MovBE    // Dst = Src, bytes reversed
	Lea      // Dst = the address that Src stands for
	Xchg     // Dst, Src = Src, Dst
	Push     // of Src, or the immediate
	Pop      // to Dst
	Add      // Dst += Src, or the immediate
	Or       //
	Adc      //
	Sbb      //
	And      //
	Sub      //
	Xor      //
	Cmp      // flags of Dst - Src
	Test     // flags of Dst & Src
	Inc      // Dst
	Dec      //
	Neg      //
	Not      //
	Rol      // Dst by Src (CL), or the immediate
	Ror      //
	Rcl      //
	Rcr      //
	Shl      //
	Shr      //
	Sar      //
	Shld     // Dst, filled from Src, by Third (CL) or the immediate
	Shrd     //
	IMul     // Dst = Src * Third, or the immediate: as wide as Dst
	MulWide  // RDX:RAX = RAX * Src, of bytes AX = AL * Src
	IMulWide // the same, signed
	// RAX, RDX = quotient, remainder of RDX:RAX by Src; of bytes AL, AH of AX
	Div
	IDiv     //
	SignFill // Dst (RDX) = the sign of Src (RAX): cwd, cdq, cqo
	// Dst = Src if Condition holds; of 4 bytes, zeroes above in either case
	MovIf
	SetIf // Dst = 1 or 0, by Condition: setcc
	BSwap // Dst
	// CF = bit of Dst that Src or the immediate names; far from Dst in memory by Src
	Bt
	Bts            //
	Btr            //
	Btc            //
	Bsf            // Dst, of Src; keeps Dst for 0
	Bsr            //
	PopCnt         // Dst, of Src
	TzCnt          //
	LzCnt          //
	CmpXchg        // Dst, with RAX and Src
	XAdd           // Dst, Src
	CmpXchgPair    // cmpxchg8b, cmpxchg16b: Dst, with RDX:RAX and RCX:RBX
	Crc32          // Dst, of Src
	AdcX           // Dst += Src + CF
	AdoX           // Dst += Src + OF
	AndN           // Dst = ^Third & Src
	BExtr          // Dst, of Src by Third
	Blsi           // Dst, of Src
	BlsMsk         //
	Blsr           //
	Bzhi           // Dst, of Src by Third
	PDep           // Dst, of Third by Src
	PExt           //
	MulX           // Dst, Third = high, low half of RDX * Src
	Rorx           // Dst, of Src by the immediate
	Sarx           // Dst, of Src by Third
	Shlx           //
	Shrx           //
	Movs           // string instructions, with or without a repeat prefix
	Cmps           //
	Stos           //
	Lods           //
	Scas           //
	Enter          //
	Leave          //
	PushF          //
	PopF           //
	LahF           //
	SahF           //
	ClearCarry     // clc
	SetCarry       // stc
	FlipCarry      // cmc
	ClearDirection // cld
	SetDirection   // std
	CpuID          //
	RdTSC          //
	Random         // rdrand, rdseed: Dst
	JumpIf         // by Condition
	JumpRCX        // jrcxz: if RCX is 0
	LoopRCX        // loop: RCX--, and jumps unless it is 0
	LoopEqual      // loope: and if ZF is set
	LoopUnequal    // loopne: and if it is not
	Jump           // relative, or to Src
	CallTo         // relative, or of Src
	Return         //
	SystemCall     //
	Stop           // ud2, int3, hlt: does not go on
	XBegin         // a transaction: goes on, or at its target with a status in RAX
	XEnd           //
	XAbort         //

	operations
)

// An access says what an operation does to an operand.
type access uint8

const (
	reads   access = 1 << iota
	writes         // all of it, surely, unless maybe is set
	maybe          // writes it, or leaves it as it was
	address        // uses its address alone
	update  = reads | writes
)

// A nature is what an operation does, whatever its operands.
type nature struct {
	dst, src, third access
	read, written   Set // registers that no operand names
	uses, sets      Flags
}

// natures has the nature of each operation; of Unknown to State, effects.go says more.
var natures = [operations]nature{
	Unknown: {dst: update | maybe, src: update | maybe, read: AllRegisters,
		written: AllRegisters &^ (1 << RSP), uses: 0x7f, sets: 0x7f},
	Vector:   {dst: writes, src: reads},
	X87:      {dst: writes, src: reads},
	State:    {dst: update | maybe, src: reads, read: 1<<RAX | 1<<RDX},
	NoOp:     {},
	Mov:      {dst: writes, src: reads},
	MovZX:    {dst: writes, src: reads},
	MovSX:    {dst: writes, src: reads},
	MovBE:    {dst: writes, src: reads},
	Lea:      {dst: writes, src: address},
	Xchg:     {dst: update, src: update},
	Push:     {src: reads, read: 1 << RSP},
	Pop:      {dst: writes, read: 1 << RSP},
	Add:      {dst: update, src: reads, sets: arithmeticFlags},
	Or:       {dst: update, src: reads, sets: arithmeticFlags},
	Adc:      {dst: update, src: reads, uses: CF, sets: arithmeticFlags},
	Sbb:      {dst: update, src: reads, uses: CF, sets: arithmeticFlags},
	And:      {dst: update, src: reads, sets: arithmeticFlags},
	Sub:      {dst: update, src: reads, sets: arithmeticFlags},
	Xor:      {dst: update, src: reads, sets: arithmeticFlags},
	Cmp:      {dst: reads, src: reads, sets: arithmeticFlags},
	Test:     {dst: reads, src: reads, sets: arithmeticFlags},
	Inc:      {dst: update, sets: arithmeticFlags &^ CF},
	Dec:      {dst: update, sets: arithmeticFlags &^ CF},
	Neg:      {dst: update, sets: arithmeticFlags},
	Not:      {dst: update},
	Rol:      {dst: update, src: reads, sets: CF | OF},
	Ror:      {dst: update, src: reads, sets: CF | OF},
	Rcl:      {dst: update, src: reads, uses: CF, sets: CF | OF},
	Rcr:      {dst: update, src: reads, uses: CF, sets: CF | OF},
	Shl:      {dst: update, src: reads, sets: arithmeticFlags},
	Shr:      {dst: update, src: reads, sets: arithmeticFlags},
	Sar:      {dst: update, src: reads, sets: arithmeticFlags},
	Shld:     {dst: update, src: reads, third: reads, sets: arithmeticFlags},
	Shrd:     {dst: update, src: reads, third: reads, sets: arithmeticFlags},
	IMul:     {dst: writes, src: reads, third: reads, sets: arithmeticFlags},
	MulWide:  {src: reads, read: 1 << RAX, sets: arithmeticFlags},
	IMulWide: {src: reads, read: 1 << RAX, sets: arithmeticFlags},
	Div:      {src: reads, read: 1 << RAX, sets: arithmeticFlags},
	IDiv:     {src: reads, read: 1 << RAX, sets: arithmeticFlags},
	SignFill: {dst: writes, src: reads},
	MovIf:    {dst: update | maybe, src: reads},
	SetIf:    {dst: writes},
	BSwap:    {dst: update},
	Bt:       {dst: reads, src: reads, sets: arithmeticFlags},
	Bts:      {dst: update, src: reads, sets: arithmeticFlags},
	Btr:      {dst: update, src: reads, sets: arithmeticFlags},
	Btc:      {dst: update, src: reads, sets: arithmeticFlags},
	Bsf:      {dst: update | maybe, src: reads, sets: arithmeticFlags},
	Bsr:      {dst: update | maybe, src: reads, sets: arithmeticFlags},
	PopCnt:   {dst: writes, src: reads, sets: arithmeticFlags},
	TzCnt:    {dst: writes, src: reads, sets: arithmeticFlags},
	LzCnt:    {dst: writes, src: reads, sets: arithmeticFlags},
	CmpXchg: {dst: update | maybe, src: reads, read: 1 << RAX, written: 1 << RAX,
		sets: arithmeticFlags},
	XAdd: {dst: update, src: update, sets: arithmeticFlags},
	CmpXchgPair: {dst: update | maybe, read: 1<<RAX | 1<<RDX | 1<<RBX | 1<<RCX,
		written: 1<<RAX | 1<<RDX, sets: ZF},
	Crc32:  {dst: update, src: reads},
	AdcX:   {dst: update, src: reads, uses: CF, sets: CF},
	AdoX:   {dst: update, src: reads, uses: OF, sets: OF},
	AndN:   {dst: writes, src: reads, third: reads, sets: arithmeticFlags},
	BExtr:  {dst: writes, src: reads, third: reads, sets: arithmeticFlags},
	Blsi:   {dst: writes, src: reads, sets: arithmeticFlags},
	BlsMsk: {dst: writes, src: reads, sets: arithmeticFlags},
	Blsr:   {dst: writes, src: reads, sets: arithmeticFlags},
	Bzhi:   {dst: writes, src: reads, third: reads, sets: arithmeticFlags},
	PDep:   {dst: writes, src: reads, third: reads},
	PExt:   {dst: writes, src: reads, third: reads},
	MulX:   {dst: writes, src: reads, third: writes, read: 1 << RDX},
	Rorx:   {dst: writes, src: reads},
	Sarx:   {dst: writes, src: reads, third: reads},
	Shlx:   {dst: writes, src: reads, third: reads},
	Shrx:   {dst: writes, src: reads, third: reads},
	Movs:   {read: 1<<RSI | 1<<RDI, written: 1<<RSI | 1<<RDI, uses: DF},
	Cmps: {read: 1<<RSI | 1<<RDI, written: 1<<RSI | 1<<RDI, uses: DF,
		sets: arithmeticFlags},
	Stos:           {read: 1<<RAX | 1<<RDI, written: 1 << RDI, uses: DF},
	Lods:           {read: 1<<RAX | 1<<RSI, written: 1<<RAX | 1<<RSI, uses: DF},
	Scas:           {read: 1<<RAX | 1<<RDI, written: 1 << RDI, uses: DF, sets: arithmeticFlags},
	Enter:          {read: 1<<RSP | 1<<RBP, written: 1 << RBP},
	Leave:          {read: 1 << RBP, written: 1 << RBP},
	PushF:          {read: 1 << RSP, uses: 0x7f},
	PopF:           {read: 1 << RSP, sets: 0x7f},
	LahF:           {read: 1 << RAX, written: 1 << RAX, uses: arithmeticFlags &^ OF},
	SahF:           {read: 1 << RAX, sets: arithmeticFlags &^ OF},
	ClearCarry:     {sets: CF},
	SetCarry:       {sets: CF},
	FlipCarry:      {uses: CF, sets: CF},
	ClearDirection: {sets: DF},
	SetDirection:   {sets: DF},
	CpuID:          {read: 1<<RAX | 1<<RCX, written: 1<<RAX | 1<<RCX | 1<<RDX | 1<<RBX},
	RdTSC:          {written: 1<<RAX | 1<<RDX},
	Random:         {dst: writes, sets: arithmeticFlags},
	JumpRCX:        {read: 1 << RCX},
	LoopRCX:        {read: 1 << RCX, written: 1 << RCX},
	LoopEqual:      {read: 1 << RCX, written: 1 << RCX, uses: ZF},
	LoopUnequal:    {read: 1 << RCX, written: 1 << RCX, uses: ZF},
	Jump:           {src: reads},
	CallTo:         {src: reads, read: 1 << RSP},
	Return:         {read: 1 << RSP},
	SystemCall:     {read: AllRegisters, written: 1<<RAX | 1<<RCX | 1<<R11},
	XBegin:         {written: 1 << RAX},
	XAbort:         {},
}
