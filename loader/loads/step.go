package loads

// An Op is what a step does. Numbers are those of enum load_op in the kernel's part.
type Op uint8

// The operations. x stands for the cell A, y for the cell B, shifted left by Scale, plus Imm. The
// arithmetic ones have the low Size bytes of their result in the cell Dst, zeroes above.
const (
	End              Op = iota // the program ends
	Sum                        // x + y
	Subtract                   // x - y
	And                        // x & y; and so on
	Or                         //
	Xor                        //
	ShiftLeft                  // x by the low 5 bits of y, 6 if Size is 8
	ShiftRight                 // the low Size bytes of x
	ShiftRightSigned           // the same, as a signed number
	Multiply                   //
	// Dst = the low Size bytes of x, with their sign above if Sign is set, else zeroes
	Extend
	// Fetch reads Size bytes, 1 to 64, at x + y into the place Dst, of 16; zeroes if that fails. A
	// hit makes at most 16: the program ends instead of one more.
	Fetch
	Pick // Dst = Size bytes of the place A, from byte Imm on, extended as by Extend
	// Branch goes on at the next step unless Condition, a condition code of the processor that asks
	// for no parity, holds of x compared with y in Size bytes; if Sign is set, of x & y.
	Branch
	// Switch takes the low Size bytes of x + y as an index. At Cases[Jump] stands how many steps
	// there are to choose from, behind it these; with a greater index it goes on at the next step,
	// and not Jump steps further.
	Switch
	Return // goes on at After[x]; if nothing is there, traced code is left, and the program ends
	Leave  // traced code may be left on this way: the program goes on
	// Store has the low Size bytes, 1, 2, 4 or 8, of the cell B be at the address x + Imm from then
	// on, for Pick: the last MostStores count, where one has all that is picked. What is read stays
	// what memory held at the hit.
	Store
)

// The cells of a program: the general registers by their hardware numbers, and what else it starts
// with; the others hold results, and are written before they are used.
const (
	ImageBias   = 16 // of the site's image: its addresses less those of the plan
	FSBase      = 17
	FirstResult = 18
	NoCell      = 127 // holds 0
	Cells       = 128
)

// What a hit may do at most.
const (
	MostReads = 16
	MostBytes = 64 // of a read
	MostSteps = 256

	MostStores = 4 // that are remembered
)

// A Step is one step of a load program.
type Step struct {
	Op        Op
	Dst       uint8
	A, B      uint8 // cells
	Scale     uint8 // 0 to 3
	Size      uint8 // bytes
	Sign      uint8 // 1: set
	Condition uint8
	Imm       int32
	// A step goes on at the next one, and so many further, modulo 2^32: programs share what they
	// have in common. Step 0 is the end.
	Jump uint32
}
