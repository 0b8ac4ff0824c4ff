package wet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"wpptrace/compress/wet/machine"
)

// An Entry is what a log says of the start of a stretch: what a hit has corrected. The zero value
// says that all was as predicted.
type Entry struct {
	Registers uint16 // those that Values has: a bit for each
	Values    [16]uint64
	HasFlags  bool
	Flags     uint8
	HasFS     bool
	FS        uint64
	Unchecked bool // the other registers are not known to be right
	Forget    bool // the other registers are not known
	Lost      bool // nothing is known of the stretch
}

// the bits of an entry's first byte
const (
	hasRegisters = 1 << iota
	hasFlags
	hasFS
	isUnchecked
	isForget
	isLost
)

func (e *Entry) bits() (b byte) {
	for i, has := range [6]bool{e.Registers != 0, e.HasFlags, e.HasFS, e.Unchecked, e.Forget,
		e.Lost} {
		if has {
			b |= 1 << i
		}
	}
	return b
}

// Apply has a machine know what the entry says. What it does not correct is confirmed, unless it is
// unchecked.
func (e *Entry) Apply(m *machine.Machine) {
	if e.Forget {
		m.Forget(machine.Set{General: 0xffff, Flags: machine.AllFlags, Vectors: 0xffff})
	}
	for r := e.Registers; r != 0; r &= r - 1 {
		n := bits.TrailingZeros16(r)
		m.SetGeneral(n, e.Values[n], machine.Confirmed)
	}
	if e.HasFlags {
		m.SetFlags(e.Flags, machine.Confirmed)
	}
	if e.HasFS {
		m.SetGeneral(machine.FS, e.FS, machine.Confirmed)
	}
	if e.Unchecked {
		return
	}
	for n := range 16 {
		if v, k := m.General(n); k == machine.Unconfirmed {
			m.SetGeneral(n, v, machine.Confirmed)
		}
	}
	if v, known, confirmed := m.Flags(); known == machine.AllFlags && confirmed != known {
		m.SetFlags(v, machine.Confirmed)
	}
}

func (e *Entry) append(b []byte) []byte {
	b = append(b, e.bits())
	if e.Registers != 0 {
		b = binary.LittleEndian.AppendUint16(b, e.Registers)
		for r := e.Registers; r != 0; r &= r - 1 {
			b = binary.AppendUvarint(b, e.Values[bits.TrailingZeros16(r)])
		}
	}
	if e.HasFlags {
		b = append(b, e.Flags)
	}
	if e.HasFS {
		b = binary.AppendUvarint(b, e.FS)
	}
	return b
}

func (e *Entry) read(r *reader) {
	has := r.byte()
	*e = Entry{HasFlags: has&hasFlags != 0, HasFS: has&hasFS != 0,
		Unchecked: has&isUnchecked != 0, Forget: has&isForget != 0, Lost: has&isLost != 0}
	if has >= 2*isLost {
		r.fail("an entry with flags %#x", has)
	}
	if has&hasRegisters != 0 {
		e.Registers = uint16(r.byte()) | uint16(r.byte())<<8
		for m := e.Registers; m != 0; m &= m - 1 {
			e.Values[bits.TrailingZeros16(m)] = r.number()
		}
	}
	if e.HasFlags {
		e.Flags = r.byte()
	}
	if e.HasFS {
		e.FS = r.number()
	}
}

// A Recovery is what a log says of the registers behind external code.
type Recovery struct {
	Registers uint16 // those that Values has
	Values    [16]uint64
	Confirmed uint16 // those that were predicted rightly
}

// Apply has a machine know what the recovery says.
func (v *Recovery) Apply(m *machine.Machine) {
	for r := v.Registers; r != 0; r &= r - 1 {
		n := bits.TrailingZeros16(r)
		m.SetGeneral(n, v.Values[n], machine.Confirmed)
	}
	for r := v.Confirmed; r != 0; r &= r - 1 {
		n := bits.TrailingZeros16(r)
		if value, k := m.General(n); k != machine.Unknown {
			m.SetGeneral(n, value, machine.Confirmed)
		}
	}
}

func (v *Recovery) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint16(b, v.Registers)
	b = binary.LittleEndian.AppendUint16(b, v.Confirmed)
	for r := v.Registers; r != 0; r &= r - 1 {
		b = binary.AppendUvarint(b, v.Values[bits.TrailingZeros16(r)])
	}
	return b
}

func (v *Recovery) read(r *reader) {
	*v = Recovery{Registers: uint16(r.byte()) | uint16(r.byte())<<8,
		Confirmed: uint16(r.byte()) | uint16(r.byte())<<8}
	for m := v.Registers; m != 0; m &= m - 1 {
		v.Values[bits.TrailingZeros16(m)] = r.number()
	}
}

// What a log says of a load. What it says nothing of is as predicted, which is what is held, and
// confirmed; or neither held nor known.
const (
	asPredicted    = iota // unconfirmed
	otherwise             // confirmed; its bytes follow
	otherwiseMaybe        // unconfirmed; its bytes follow
	notKnown              // though something is held there
	loadCodes
)

// A Log is what a thread's values are known by, beside its paths: what the model mispredicts, at
// hits, behind external code and at loads. What has happened since Begin can be taken back. The
// zero value is an empty one.
type Log struct {
	done    logState
	open    logState // with what has happened since
	entry   Entry
	isOpen  bool
	Symbols uint64 // that have been walked
}

// A logState is the streams of a log.
type logState struct {
	entries, recoveries, loads runs
}

// runs are a stream of numbers of things of which nothing is said, each followed by one of which
// something is.
type runs struct {
	data []byte
	run  uint64
}

func (s *runs) say() {
	s.data = binary.AppendUvarint(s.data, s.run)
	s.run = 0
}

// Begin begins a stretch at a place, and keeps what has happened before.
func (l *Log) Begin(at Place, e *Entry) {
	l.keep()
	l.entry, l.isOpen = *e, true
	l.done = l.open
}

func (l *Log) keep() {
	if !l.isOpen {
		return
	}
	if s := &l.open.entries; l.entry.bits() == 0 {
		s.run++
	} else {
		s.say()
		s.data = l.entry.append(s.data)
	}
}

// Lose takes back what has happened since Begin, and says that nothing is known of that stretch.
func (l *Log) Lose() {
	l.open = l.done
	l.entry.Lost = true
}

// Recover says what is known behind external code, at a place.
func (l *Log) Recover(at Place, v *Recovery) {
	s := &l.open.recoveries
	if v.Registers|v.Confirmed == 0 {
		s.run++
		return
	}
	s.say()
	s.data = v.append(s.data)
}

// Load says what a load has read, and how sure that is: of that, what was not predicted.
func (l *Log) Load(of *Load, read []byte, k machine.Knowledge) (isNew bool) {
	predicted, held := of.Knowledge(len(read)), of.All(len(read))
	s := &l.open.loads
	same := held && slices.Equal(of.Bytes, read)
	switch {
	case k == machine.Unknown && held:
		s.say()
		s.data = append(s.data, notKnown)
		return false
	case same && k == machine.Confirmed, k == machine.Unknown:
		s.run++
		return k != predicted
	case same && k == machine.Unconfirmed:
		s.say()
		s.data = append(s.data, asPredicted)
		return k != predicted
	case k == machine.Confirmed:
		s.say()
		s.data = append(s.data, otherwise)
	default:
		s.say()
		s.data = append(s.data, otherwiseMaybe)
	}
	s.data = append(s.data, read...)
	return true
}

// Bytes is how much memory the log takes.
func (l *Log) Bytes() uint64 {
	return uint64(cap(l.open.entries.data) + cap(l.open.recoveries.data) +
		cap(l.open.loads.data))
}

// append appends the log as it is now, as that of a thread.
func (l *Log) append(b []byte) []byte {
	now := *l
	now.open.entries.data = slices.Clone(now.open.entries.data)
	now.keep()
	b = binary.AppendUvarint(b, now.Symbols)
	for _, s := range []*runs{&now.open.entries, &now.open.recoveries, &now.open.loads} {
		b = binary.AppendUvarint(b, uint64(len(s.data)))
		b = append(b, s.data...)
		b = binary.AppendUvarint(b, s.run)
	}
	return b
}

// A player is the oracle that says what a log does.
type player struct {
	symbols                    uint64
	entries, recoveries, loads runReader
	entry                      Entry
	recovery                   Recovery
	err                        error
}

// A runReader reads runs.
type runReader struct {
	reader
	run  uint64
	last uint64 // the run at the end
	more bool   // something is said behind the run
}

// next reports whether something is said of the next thing.
func (s *runReader) next() bool {
	if s.run > 0 {
		s.run--
		return false
	}
	is := s.more
	if !is {
		s.fail("more happens than it says")
	}
	return is
}

// advance reads the next run.
func (s *runReader) advance() {
	if s.more = len(s.rest) > 0; s.more {
		s.run = s.number()
	} else {
		s.run = s.last
	}
}

func readLog(r *reader) *player {
	p := &player{symbols: r.number()}
	for _, s := range []*runReader{&p.entries, &p.recoveries, &p.loads} {
		n := r.count(len(r.rest), "bytes")
		s.rest = r.take(n)
		s.last = r.number()
		s.advance()
	}
	p.err = r.end()
	return p
}

// failed is the first failure of the streams.
func (p *player) failed() error {
	if p.err != nil {
		return p.err
	}
	for _, s := range []*runReader{&p.entries, &p.recoveries, &p.loads} {
		if s.err != nil {
			return s.err
		}
	}
	return nil
}

// Begin is for the walker, as the other methods are: see Oracle.
func (p *player) Begin(at Place) (lost bool, err error) {
	p.entry = Entry{}
	if at.Symbol >= p.symbols && at.Symbol > 0 {
		return true, nil
	}
	if p.entries.next() {
		p.entry.read(&p.entries.reader)
		p.entries.advance()
	}
	return p.entry.Lost, p.failed()
}

// Site: see Oracle.
func (p *player) Site(at Place, _ int, m *machine.Machine) (lost bool, err error) {
	if at.Symbol >= p.symbols {
		return true, nil
	}
	lost, err = p.Begin(at)
	p.entry.Apply(m)
	return lost, err
}

// Load: see Oracle.
func (p *player) Load(l *Load) (k machine.Knowledge, isNew bool) {
	predicted, held := l.Knowledge(len(l.Bytes)), l.All(len(l.Bytes))
	if !p.loads.next() {
		if held {
			k = machine.Confirmed
		}
		return k, held && k != predicted
	}
	code := p.loads.byte()
	if code >= loadCodes {
		p.loads.fail("a load of kind %d", code)
	}
	switch k = machine.Unconfirmed; code {
	case notKnown:
		k = machine.Unknown
	case asPredicted:
		if isNew = k != predicted; !held {
			p.loads.fail("a load as predicted, where nothing is")
			k, isNew = machine.Unknown, false
		}
	case otherwise:
		k = machine.Confirmed
		fallthrough
	default:
		copy(l.Bytes, p.loads.take(len(l.Bytes)))
		isNew = true
	}
	p.loads.advance()
	return k, isNew
}

// Resync: see Oracle.
func (p *player) Resync(_ Place, m *machine.Machine) error {
	if p.recoveries.next() {
		p.recovery.read(&p.recoveries.reader)
		p.recovery.Apply(m)
		p.recoveries.advance()
	}
	return p.failed()
}

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

func (r *reader) byte() byte {
	if len(r.rest) == 0 {
		r.cut()
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
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
