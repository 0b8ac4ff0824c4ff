package wet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"

	"wpptrace/compress/coding"
	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wet/memory"
)

// A player is the oracle that says what a log does.
type player struct {
	symbols  uint64
	sure     uint64 // loads that the model is sure of, up to the next one that is not as it holds
	odd      reader // how many, for the others
	said     reading
	memory   *memory.Memory // the walk's
	common   *image
	entry    Entry
	recovery Recovery
	err      error
}

// mostSaid bounds how much a segment may say. It has far fewer instructions.
const mostSaid = 1 << 25

func readLog(r *reader) *player {
	p := &player{symbols: r.number(), common: &image{}}
	p.odd.rest = r.take(r.count(len(r.rest), "bytes"))
	p.advance()
	n := r.count(mostSaid, "numbers")
	coded := r.take(r.count(len(r.rest), "bytes"))
	if p.err = r.end(); p.err == nil {
		p.said = reading{newTranscript(coding.NewReader(coded, tableSize(n)), n), n, nil}
	}
	return p
}

// advance goes to the next load that the model is sure of, and wrongly.
func (p *player) advance() {
	if p.sure = math.MaxUint64; len(p.odd.rest) > 0 {
		p.sure = p.odd.number()
	}
}

// A reading reads what a log says.
type reading struct {
	transcript *transcript
	left       int // numbers
	err        error
}

// number returns what is said next, of a cell, 0 once something was wrong.
func (x *reading) number(in cell, about uint64) uint64 {
	switch {
	case x.err != nil:
		return 0
	case x.left == 0:
		x.fail("it says less than it should")
		return 0
	}
	x.left--
	n := x.transcript.code(said{in, 0, about})
	if x.transcript.choices.Short() {
		x.fail("it says less than it should")
		return 0
	}
	return n
}

func (x *reading) fail(format string, args ...any) {
	if x.err == nil {
		x.err = fmt.Errorf(format, args...)
	}
}

// failed is the first failure.
func (p *player) failed() error {
	switch {
	case p.err != nil:
		return p.err
	case p.odd.err != nil:
		return p.odd.err
	}
	return p.said.err
}

// Begin is for the walker, as the other methods are: see Oracle.
func (p *player) Begin(at Place) (lost bool, err error) {
	p.entry = Entry{}
	if at.Symbol >= p.symbols && at.Symbol > 0 {
		return true, nil
	}
	p.entry.read(&p.said, at)
	return p.entry.Lost, p.failed()
}

// Site: see Oracle.
func (p *player) Site(at Place, _ int, m *machine.Machine) (lost bool, err error) {
	if at.Symbol >= p.symbols {
		return true, nil
	}
	lost, err = p.Begin(at)
	p.entry.Apply(m)
	if p.entry.Changed {
		p.memory.Lose()
	}
	return lost, err
}

// Load: see Oracle.
func (p *player) Load(l *Load) (k machine.Knowledge, isNew bool) {
	predicted, held := l.Knowledge(len(l.Bytes)), l.All(len(l.Bytes))
	if isSure := held && predicted == machine.Confirmed; isSure {
		if p.sure > 0 {
			p.sure--
			return machine.Confirmed, false
		}
		p.advance()
	}
	state := l.state(predicted, held)
	if !held && l.isUntouched() && p.common.read(l.Addr, l.Bytes) {
		held, state = true, state|stateInCommon
	}
	code := p.said.number(cellOf(l.Place, loadCode), state)
	switch k = machine.Unconfirmed; code {
	case asExpected:
		if !held {
			return machine.Unknown, false
		}
		k = machine.Confirmed
		isNew = k != predicted
	case asPredicted:
		if isNew = k != predicted; !held {
			p.said.fail("it has a load as predicted, where nothing is")
			k, isNew = machine.Unknown, false
		}
	case otherwise, otherwiseMaybe:
		if code == otherwise {
			k = machine.Confirmed
		}
		beside := l.beside()
		for i := 0; i < len(l.Bytes); i += 8 {
			beside = p.said.number(cellOf(l.Place, loadWord+field(i/8)), beside)
			var word [8]byte
			binary.LittleEndian.PutUint64(word[:], beside)
			copy(l.Bytes[i:], word[:])
		}
		isNew = true
	case notKnown:
		k = machine.Unknown
	default:
		p.said.fail("it has a load of kind %d", code)
	}
	return k, isNew
}

// Resync: see Oracle.
func (p *player) Resync(at Place, m *machine.Machine) (begins, lost bool, err error) {
	p.recovery.read(&p.said, at)
	p.recovery.Apply(m)
	return true, p.recovery.Lost, p.failed()
}

// Result: see Oracle.
func (p *player) Result(at Place, _ uint16, m *machine.Machine) {
	if p.said.number(cellOf(at, resultIsEmpty), 0) == 0 {
		return
	}
	which := p.said.number(cellOf(at, resultRegisters), 0)
	v := Recovery{Registers: uint16(which), Unsure: uint16(which >> 16)}
	readRegisters(&p.said, at, resultValue, v.Registers, &v.Values)
	v.Apply(m)
}

// Used: see Oracle.
func (p *player) Used(at Place, registers uint16, m *machine.Machine) {
	for r := registers; r != 0; r &= r - 1 {
		n := bits.TrailingZeros16(r)
		m.SetGeneral(n, p.said.number(cellOf(at, usedValue+field(n)), 0), machine.Confirmed)
	}
}

// Leaves does nothing: what comes of it is said where the code returns.
func (p *player) Leaves(machine.Outcome, *machine.Machine) {}

// Doubt: see Oracle.
func (p *player) Doubt() {}

// Disagrees: see Oracle.
func (p *player) Disagrees() { p.err = errDisagrees }

var errDisagrees = errors.New("a jump leads elsewhere than its path")

// A reader takes numbers from data, zeroes once something was wrong.
type reader struct {
	rest []byte
	err  error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("it has "+format, args...)
	}
	r.rest = nil
}

func (r *reader) number() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.cut()
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// count reads a number that is at most so large.
func (r *reader) count(most int, of string) int {
	n := r.number()
	if n > uint64(max(most, 0)) {
		r.fail("%d %s of %d", n, of, most)
		return 0
	}
	return int(n)
}

func (r *reader) take(n int) []byte {
	if n > len(r.rest) {
		r.cut()
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) cut() {
	if r.err == nil {
		r.err = errors.New("it is cut off")
	}
	r.rest = nil
}

// end fails where something is left.
func (r *reader) end() error {
	if r.err == nil && len(r.rest) > 0 {
		r.fail("%d bytes too many", len(r.rest))
	}
	return r.err
}
