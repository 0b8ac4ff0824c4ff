package values

import (
	"encoding/binary"

	"wpptrace/compress/wet/machine"
	"wpptrace/internal/location"
)

// A Moment is what registers and memory hold at some time: see wet.Before.
type Moment interface {
	General(n int) (uint64, machine.Knowledge)
	Vector(n int) (*[32]byte, *[32]machine.Knowledge)
	BiasOf(image int) uint64
	Read(addr uint64, to []byte) machine.Knowledge
}

// An Entry is what general registers held when an activation began.
type Entry [location.Generals]word

// EntryAt is the entry of an activation that begins at a moment.
func EntryAt(at Moment) *Entry {
	var e Entry
	for i := range e {
		e[i].n, e[i].known = at.General(i)
	}
	return &e
}

// A word is a number, and what is known of it.
type word struct {
	n     uint64
	known machine.Knowledge
}

// A place is where some bytes are: in memory, or nowhere but in registers or in the code.
type place struct {
	inMemory bool
	addr     word
	bytes    []byte // where it is not in memory
	sure     []machine.Knowledge
}

// general has the hardware's numbers of the general registers, by those of DWARF.
var general = [location.Generals]int{0, 2, 1, 3, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15}

// An evaluation is that of an expression of an image's debug information.
type evaluation struct {
	at    Moment
	entry *Entry // nil: it is not known
	image int
	stack []word
	// what the expression has given so far, if it is not an address: a register, a number, or what
	// it has put together of pieces
	given  *place
	pieces *place
}

// evaluate finds where what an expression says is. ok is false where that is not known.
func (e *evaluation) evaluate(code []byte) (p place, ok bool) {
	for len(code) > 0 {
		op, rest, err := location.Next(code)
		if err != nil || !e.step(&op) {
			return p, false
		}
		code = rest
	}
	switch {
	case e.pieces != nil:
		return *e.pieces, true
	case e.given != nil:
		return *e.given, true
	}
	top, ok := e.pop()
	return place{inMemory: true, addr: top}, ok
}

func (e *evaluation) push(n uint64, k machine.Knowledge) bool {
	const most = 64
	if k == machine.Unknown {
		n = 0
	}
	e.stack = append(e.stack, word{n, k})
	return len(e.stack) <= most
}

func (e *evaluation) pop() (w word, ok bool) {
	if len(e.stack) == 0 {
		return w, false
	}
	w = e.stack[len(e.stack)-1]
	e.stack = e.stack[:len(e.stack)-1]
	return w, true
}

// give has the expression give bytes.
func (e *evaluation) give(bytes []byte, sure []machine.Knowledge) bool {
	e.given = &place{bytes: bytes, sure: sure}
	return true
}

// giveWord has it give a number, of 8 bytes.
func (e *evaluation) giveWord(w word) bool {
	sure := make([]machine.Knowledge, 8)
	for i := range sure {
		sure[i] = w.known
	}
	return e.give(binary.LittleEndian.AppendUint64(nil, w.n), sure)
}

func (e *evaluation) step(op *location.Op) bool {
	switch op.Code {
	case location.Addr:
		return e.push(uint64(op.N)+e.at.BiasOf(e.image), machine.Confirmed)
	case location.Constu, location.Consts:
		return e.push(uint64(op.N), machine.Confirmed)
	case location.Breg0:
		if op.Register >= location.Generals {
			return false
		}
		n, k := e.at.General(general[op.Register])
		return e.push(n+uint64(op.N), k)
	case location.Reg0:
		return e.register(op.Register)
	case location.EntryValue:
		return e.entryValue(op.Block)
	case location.Deref:
		return e.load(8)
	case location.DerefSize:
		return op.N >= 1 && op.N <= 8 && e.load(int(op.N))
	case location.StackValue:
		top, ok := e.pop()
		return ok && e.giveWord(top)
	case location.ImplicitValue:
		sure := make([]machine.Knowledge, len(op.Block))
		for i := range sure {
			sure[i] = machine.Confirmed
		}
		return e.give(op.Block, sure)
	case location.Piece:
		return e.piece(op.N)
	case location.Nop:
		return true
	case location.Dup, location.Drop, location.Over, location.Pick, location.Swap, location.Rot:
		return e.arrange(op)
	}
	return e.compute(op)
}

func (e *evaluation) register(n int) bool {
	switch {
	case n < location.Generals:
		value, k := e.at.General(general[n])
		return e.giveWord(word{value, k})
	case location.Vectors <= n && n < location.Vectors+16:
		data, sure := e.at.Vector(n - location.Vectors)
		bytes, known := *data, *sure
		return e.give(bytes[:], known[:])
	}
	return false
}

// entryValue pushes what a register held when the activation began.
func (e *evaluation) entryValue(block []byte) bool {
	if len(block) == 0 {
		return false
	}
	op, rest, err := location.Next(block)
	if err != nil || len(rest) > 0 || op.Code != location.Reg0 || op.Register >= len(general) ||
		e.entry == nil {
		return false
	}
	w := e.entry[general[op.Register]]
	return e.push(w.n, w.known)
}

func (e *evaluation) load(size int) bool {
	at, ok := e.pop()
	if !ok {
		return false
	}
	var bytes [8]byte
	k := at.known
	if k != machine.Unknown {
		k &= e.at.Read(at.n, bytes[:size])
	}
	return e.push(binary.LittleEndian.Uint64(bytes[:]), k)
}

// piece puts bytes of what was given behind those of the pieces before.
func (e *evaluation) piece(size int64) bool {
	if e.pieces == nil {
		e.pieces = &place{}
	}
	if size < 0 || size > mostBytes-int64(len(e.pieces.bytes)) {
		return false
	}
	from := e.given
	if from == nil {
		if at, ok := e.pop(); ok {
			from = &place{inMemory: true, addr: at}
		} else { // optimized out
			from = &place{}
		}
	}
	for i := range size {
		b, k := from.read(e.at, i, 1)
		e.pieces.bytes = append(e.pieces.bytes, byte(b))
		e.pieces.sure = append(e.pieces.sure, k)
	}
	e.given = nil
	return true
}

// read returns 1 to 8 bytes of a place, as a number, from some way behind its first on.
func (p *place) read(at Moment, from int64, size int) (n uint64, k machine.Knowledge) {
	var bytes [8]byte
	switch {
	case p.inMemory:
		if k = p.addr.known; k != machine.Unknown {
			k &= at.Read(p.addr.n+uint64(from), bytes[:size])
		}
	case from < 0 || from+int64(size) > int64(len(p.bytes)):
		return 0, machine.Unknown
	default:
		k = machine.Confirmed
		copy(bytes[:size], p.bytes[from:])
		for _, sure := range p.sure[from : from+int64(size)] {
			k &= sure
		}
	}
	if k == machine.Unknown {
		return 0, k
	}
	return binary.LittleEndian.Uint64(bytes[:]), k
}

// arrange changes the order of what is on the stack.
func (e *evaluation) arrange(op *location.Op) bool {
	depth := map[uint8]int64{location.Dup: 0, location.Over: 1, location.Pick: op.N}
	n := int64(len(e.stack))
	switch op.Code {
	case location.Drop:
		_, ok := e.pop()
		return ok
	case location.Swap:
		if n < 2 {
			return false
		}
		e.stack[n-1], e.stack[n-2] = e.stack[n-2], e.stack[n-1]
		return true
	case location.Rot: // the first becomes the third
		if n < 3 {
			return false
		}
		e.stack[n-1], e.stack[n-2], e.stack[n-3] = e.stack[n-2], e.stack[n-3], e.stack[n-1]
		return true
	}
	at := n - 1 - depth[op.Code]
	if at < 0 {
		return false
	}
	return e.push(e.stack[at].n, e.stack[at].known)
}

// compute pushes what an operation makes of one or two numbers.
func (e *evaluation) compute(op *location.Op) bool {
	a, ok := e.pop()
	if !ok {
		return false
	}
	switch op.Code {
	case location.PlusUconst:
		return e.push(a.n+uint64(op.N), a.known)
	case location.Neg:
		return e.push(-a.n, a.known)
	case location.Not:
		return e.push(^a.n, a.known)
	case location.Abs:
		return e.push(uint64(max(int64(a.n), -int64(a.n))), a.known)
	}
	b, ok := e.pop()
	if !ok {
		return false
	}
	n, ok := binaryOf(op.Code, b.n, a.n)
	return ok && e.push(n, a.known&b.known)
}

// binaryOf is what an operation makes of two numbers, of which b was pushed last.
func binaryOf(code uint8, a, b uint64) (n uint64, ok bool) {
	truth := func(is bool) uint64 {
		if is {
			return 1
		}
		return 0
	}
	x, y := int64(a), int64(b)
	switch code {
	case location.Plus:
		return a + b, true
	case location.Minus:
		return a - b, true
	case location.Mul:
		return a * b, true
	case location.And:
		return a & b, true
	case location.Or:
		return a | b, true
	case location.Xor:
		return a ^ b, true
	case location.Shl:
		return a << b, true
	case location.Shr:
		return a >> b, true
	case location.Shra:
		return uint64(x >> b), true
	case location.Div:
		if b == 0 {
			return 0, false
		}
		return uint64(x / y), true
	case location.Mod:
		if b == 0 {
			return 0, false
		}
		return a % b, true
	case location.Eq:
		return truth(x == y), true
	case location.Ge:
		return truth(x >= y), true
	case location.Gt:
		return truth(x > y), true
	case location.Le:
		return truth(x <= y), true
	case location.Lt:
		return truth(x < y), true
	case location.Ne:
		return truth(x != y), true
	}
	return 0, false
}
