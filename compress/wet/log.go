package wet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wet/memory"
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
	Changed   bool // memory that is not private may have been changed before
}

// the bits of an entry's first byte
const (
	hasRegisters = 1 << iota
	hasFlags
	hasFS
	isUnchecked
	isForget
	isLost
	isChanged
)

func (e *Entry) bits() (b byte) {
	for i, has := range [7]bool{e.Registers != 0, e.HasFlags, e.HasFS, e.Unchecked, e.Forget,
		e.Lost, e.Changed} {
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
	m.ConfirmFlags()
}

func (e *Entry) say(s *sheet, at Place) {
	s.say(cellOf(at, entryBits), uint64(e.bits()))
	if e.Registers != 0 {
		s.say(cellOf(at, entryRegisters), uint64(e.Registers))
		sayRegisters(s, at, entryValue, e.Registers, &e.Values)
	}
	if e.HasFlags {
		s.say(cellOf(at, entryFlags), uint64(e.Flags))
	}
	if e.HasFS {
		s.say(cellOf(at, entryFS), e.FS)
	}
}

func (e *Entry) read(x *reading, at Place) {
	has := x.number(cellOf(at, entryBits))
	*e = Entry{HasFlags: has&hasFlags != 0, HasFS: has&hasFS != 0,
		Unchecked: has&isUnchecked != 0, Forget: has&isForget != 0, Lost: has&isLost != 0,
		Changed: has&isChanged != 0}
	if has >= 2*isChanged {
		x.fail("it has an entry with flags %#x", has)
	}
	if has&hasRegisters != 0 {
		e.Registers = uint16(x.number(cellOf(at, entryRegisters)))
		readRegisters(x, at, entryValue, e.Registers, &e.Values)
	}
	if e.HasFlags {
		e.Flags = uint8(x.number(cellOf(at, entryFlags)))
	}
	if e.HasFS {
		e.FS = x.number(cellOf(at, entryFS))
	}
}

func sayRegisters(s *sheet, at Place, first field, of uint16, values *[16]uint64) {
	for ; of != 0; of &= of - 1 {
		n := bits.TrailingZeros16(of)
		s.say(cellOf(at, first+field(n)), values[n])
	}
}

func readRegisters(x *reading, at Place, first field, of uint16, values *[16]uint64) {
	for ; of != 0; of &= of - 1 {
		n := bits.TrailingZeros16(of)
		values[n] = x.number(cellOf(at, first+field(n)))
	}
}

// A Recovery is what a log says of the registers behind external code.
type Recovery struct {
	Registers uint16 // those that Values has
	Values    [16]uint64
	Unsure    uint16 // of these, those that are unconfirmed
	Pending   uint16 // those whose values are said where they are used first, if ever
	Confirmed uint16 // those that were predicted rightly
	Lost      bool   // nothing is known of the stretch that begins there
}

// recoveryLost stands above the registers that are confirmed, and those that are unsure above it;
// those that are pending above those that have values.
const (
	recoveryLost    = 1 << 16
	unsureShift     = 17
	recoveryPending = 16
)

// Apply has a machine know what the recovery says.
func (v *Recovery) Apply(m *machine.Machine) {
	for r := v.Registers; r != 0; r &= r - 1 {
		n := bits.TrailingZeros16(r)
		k := machine.Confirmed
		if v.Unsure>>n&1 != 0 {
			k = machine.Unconfirmed
		}
		m.SetGeneral(n, v.Values[n], k)
	}
	for r := v.Confirmed; r != 0; r &= r - 1 {
		n := bits.TrailingZeros16(r)
		if value, k := m.General(n); k != machine.Unknown {
			m.SetGeneral(n, value, machine.Confirmed)
		}
	}
	m.Pend(v.Pending)
}

func (v *Recovery) isEmpty() bool {
	return v.Registers|v.Pending|v.Confirmed == 0 && !v.Lost
}

func (v *Recovery) say(s *sheet, at Place) {
	s.say(cellOf(at, recoveryRegisters), uint64(v.Registers)|uint64(v.Pending)<<recoveryPending)
	confirmed := uint64(v.Confirmed) | uint64(v.Unsure)<<unsureShift
	if v.Lost {
		confirmed |= recoveryLost
	}
	s.say(cellOf(at, recoveryConfirmed), confirmed)
	sayRegisters(s, at, recoveryValue, v.Registers, &v.Values)
}

func (v *Recovery) read(x *reading, at Place) {
	registers := x.number(cellOf(at, recoveryRegisters))
	*v = Recovery{Registers: uint16(registers), Pending: uint16(registers >> recoveryPending)}
	confirmed := x.number(cellOf(at, recoveryConfirmed))
	v.Confirmed, v.Lost = uint16(confirmed), confirmed&recoveryLost != 0
	v.Unsure = uint16(confirmed >> unsureShift)
	readRegisters(x, at, recoveryValue, v.Registers, &v.Values)
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
	done     runs
	open     runs // with what has happened since
	sheet    sheet
	opener   opener // of the stretch
	entry    Entry
	recovery Recovery
	at       Place    // of these
	symbols  uint64   // of the stream that have been walked
	start    *start   // nil: the thread's
	ran      []uint64 // how often each symbol of a path has, by its number
}

// Walked says that a symbol has been walked to its end.
func (l *Log) Walked() { l.symbols++ }

// Ran says that a path, of a symbol of the snapshot, has run so often: where it ends is behind the
// segment's beginning, and before that of the next. It need not have been walked.
func (l *Log) Ran(symbol uint32, times uint64) {
	if n := int(symbol) + 1 - len(l.ran); n > 0 {
		l.ran = append(l.ran, make([]uint64, n)...)
	}
	l.ran[symbol] += times
}

// A start is where a segment begins, but for a thread's first: at a site, before its hit.
type start struct {
	at       Place
	external bool   // external code, or a gap, comes right before it
	state    []byte // of the machine
}

// Cut ends a segment before the hit at the site where a walk is, and begins the next one. It
// returns that which has ended, which nothing is added to any more: another goroutine may Encode
// it.
func (l *Log) Cut(w *Walker) (ended *Log) {
	ended = &Log{}
	*ended = *l
	ended.symbols = math.MaxUint64
	w.machine.Forget(machine.Set{General: w.machine.Pending()})
	w.callers = w.callers[:0] // whoever replays the next one alone has none
	*l = Log{symbols: w.at.Symbol, start: &start{w.at, w.external, w.machine.AppendState(nil)}}
	return ended
}

// Copy returns the log as it is now, which shares the numbers with it: another goroutine may Encode
// it. It takes some 100 ns for each instruction that something is said of.
func (l *Log) Copy() *Log {
	c := *l
	c.sheet, c.ran = l.sheet.clone(), slices.Clone(l.ran)
	return &c
}

// Encode returns the log as files have it. It takes some microseconds for each number that was not
// as predicted.
func (l *Log) Encode() Encoded { return Encoded{l.appendHead(nil), l.append(nil)} }

// An opener is what a stretch begins with.
type opener uint8

const (
	nothing opener = iota
	hit
	external
)

// runs is how many things there were, by their kind, since the last of which something is said.
type runs [loadRun + 1]uint64

// say says how many there were.
func (l *Log) say(kind field) {
	l.sheet.say(cell{field: kind}, l.open[kind])
	l.open[kind] = 0
}

// Begin begins a stretch at a place, and keeps what has happened before.
func (l *Log) Begin(at Place, e *Entry) {
	l.keep()
	l.entry, l.at, l.opener = *e, at, hit
	l.done = l.open
}

// Recover begins one behind external code, and says what is known there.
func (l *Log) Recover(at Place, v *Recovery) {
	l.keep()
	l.recovery, l.at, l.opener = *v, at, external
	l.done = l.open
}

func (l *Log) keep() {
	switch {
	case l.opener == nothing:
		return
	case l.opener == external && l.recovery.isEmpty():
		l.open[recoveryRun]++
	case l.opener == external:
		l.say(recoveryRun)
		l.recovery.say(&l.sheet, l.at)
	case l.entry.bits() == 0:
		l.open[entryRun]++
	default:
		l.say(entryRun)
		l.entry.say(&l.sheet, l.at)
	}
	l.sheet.keep()
}

// Lose takes back what has happened since Begin, and says that nothing is known of that stretch.
func (l *Log) Lose() {
	l.open = l.done
	l.sheet.takeBack()
	l.entry.Lost, l.recovery.Lost = true, true
}

// Used says what a pending register holds that an instruction uses.
func (l *Log) Used(at Place, register int, value uint64) {
	l.sheet.say(cellOf(at, usedValue+field(register)), value)
}

// Load says what a load has read, and how sure that is: of that, what was not predicted.
func (l *Log) Load(of *Load, read []byte, k machine.Knowledge) (isNew bool) {
	predicted, held := of.OfSegment().Knowledge(len(read)), of.All(len(read))
	same := held && slices.Equal(of.Bytes, read)
	at := cellOf(of.Place, loadCode)
	switch {
	case k == machine.Unknown && held:
		l.say(loadRun)
		l.sheet.say(at, notKnown)
		return false
	case same && k == machine.Confirmed, k == machine.Unknown:
		l.open[loadRun]++
		return k != predicted
	case same && k == machine.Unconfirmed:
		l.say(loadRun)
		l.sheet.say(at, asPredicted)
		return k != predicted
	}
	l.say(loadRun)
	if k == machine.Confirmed {
		l.sheet.say(at, otherwise)
	} else {
		l.sheet.say(at, otherwiseMaybe)
	}
	for i := 0; i < len(read); i += 8 {
		var word [8]byte
		copy(word[:], read[i:])
		l.sheet.say(cellOf(of.Place, loadWord+field(i/8)), binary.LittleEndian.Uint64(word[:]))
	}
	return true
}

// Result says what is known of the registers that an instruction has left unknown.
func (l *Log) Result(at Place, v *Recovery) {
	if v.Registers == 0 {
		l.open[resultRun]++
		return
	}
	l.say(resultRun)
	l.sheet.say(cellOf(at, resultRegisters), uint64(v.Registers)|uint64(v.Unsure)<<16)
	sayRegisters(&l.sheet, at, resultValue, v.Registers, &v.Values)
}

// how a segment begins
const (
	startsThread = iota
	starts
	startsExternal
)

func (s *start) append(b []byte) []byte {
	if s == nil {
		return append(b, startsThread)
	}
	if s.external {
		b = append(b, startsExternal)
	} else {
		b = append(b, starts)
	}
	for _, n := range []uint64{s.at.Symbol, uint64(s.at.Step), uint64(s.at.Routine),
		uint64(s.at.Block), uint64(s.at.Insn), uint64(len(s.state))} {
		b = binary.AppendUvarint(b, n)
	}
	return append(b, s.state...)
}

// readStart reads where a segment of a snapshot begins; nil: with its thread.
func readStart(r *reader, code *Code) *start {
	how := r.count(startsExternal, "starts")
	if how == startsThread {
		return nil
	}
	s := &start{at: Place{Symbol: r.number()}, external: how == startsExternal}
	s.at.Step = r.count(math.MaxInt32, "steps")
	s.at.Routine = r.count(len(code.routines)-1, "routine")
	s.at.Block = r.count(math.MaxInt32, "block")
	s.at.Insn = r.count(math.MaxInt32, "instruction")
	s.state = r.take(r.count(len(r.rest), "bytes"))
	return s
}

// Bytes is how much memory the log takes.
func (l *Log) Bytes() uint64 { return l.sheet.bytes() }

// appendHead appends where the log begins, and how often each symbol has run in it: of a thread's
// only log, the paths say that.
func (l *Log) appendHead(b []byte) []byte {
	b = l.start.append(b)
	if isOnly := l.start == nil && l.symbols != math.MaxUint64; isOnly {
		return binary.AppendUvarint(b, 0)
	}
	var gaps, times []byte
	n, next := uint64(0), 0
	for symbol, ran := range l.ran {
		if ran > 0 {
			gaps = binary.AppendUvarint(gaps, uint64(symbol-next))
			times = binary.AppendUvarint(times, ran)
			n, next = n+1, symbol+1
		}
	}
	return append(append(binary.AppendUvarint(b, n), gaps...), times...)
}

// append appends the log as it is now.
func (l *Log) append(b []byte) []byte {
	now := l.Copy()
	now.keep()
	b = binary.AppendUvarint(b, now.symbols)
	for _, run := range now.open {
		b = binary.AppendUvarint(b, run)
	}
	return now.sheet.append(b)
}

// A player is the oracle that says what a log does.
type player struct {
	symbols  uint64
	left     runs              // things of which nothing is said
	more     [loadRun + 1]bool // something is said behind them
	last     runs              // at the end
	sheet    reading
	memory   *memory.Memory // the walk's
	entry    Entry
	recovery Recovery
	err      error
}

// next reports whether something is said of the next thing of a kind.
func (p *player) next(kind field) bool {
	if p.left[kind] > 0 {
		p.left[kind]--
		return false
	}
	if !p.more[kind] {
		p.sheet.fail("more happens than it says")
	}
	return p.more[kind]
}

// advance goes to the next run of a kind.
func (p *player) advance(kind field) {
	in := cell{field: kind}
	if p.more[kind] = p.sheet.has(in); p.more[kind] {
		p.left[kind] = p.sheet.number(in)
	} else {
		p.left[kind] = p.last[kind]
	}
}

func readLog(r *reader) *player {
	p := &player{symbols: r.number()}
	for kind := range p.last {
		p.last[kind] = r.number()
	}
	p.sheet = readSheet(r)
	p.err = r.end()
	for kind := range p.left {
		p.advance(field(kind))
	}
	return p
}

// failed is the first failure.
func (p *player) failed() error {
	if p.err != nil {
		return p.err
	}
	return p.sheet.err
}

// Begin is for the walker, as the other methods are: see Oracle.
func (p *player) Begin(at Place) (lost bool, err error) {
	p.entry = Entry{}
	if at.Symbol >= p.symbols && at.Symbol > 0 {
		return true, nil
	}
	if p.next(entryRun) {
		p.entry.read(&p.sheet, at)
		p.advance(entryRun)
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
	if p.entry.Changed {
		p.memory.Lose()
	}
	return lost, err
}

// Load: see Oracle.
func (p *player) Load(l *Load) (k machine.Knowledge, isNew bool) {
	predicted, held := l.Knowledge(len(l.Bytes)), l.All(len(l.Bytes))
	if !p.next(loadRun) {
		if held {
			k = machine.Confirmed
		}
		return k, held && k != predicted
	}
	code := p.sheet.number(cellOf(l.Place, loadCode))
	if code >= loadCodes {
		p.sheet.fail("it has a load of kind %d", code)
	}
	switch k = machine.Unconfirmed; code {
	case notKnown:
		k = machine.Unknown
	case asPredicted:
		if isNew = k != predicted; !held {
			p.sheet.fail("it has a load as predicted, where nothing is")
			k, isNew = machine.Unknown, false
		}
	case otherwise:
		k = machine.Confirmed
		fallthrough
	default:
		for i := 0; i < len(l.Bytes); i += 8 {
			var word [8]byte
			binary.LittleEndian.PutUint64(word[:], p.sheet.number(cellOf(l.Place,
				loadWord+field(i/8))))
			copy(l.Bytes[i:], word[:])
		}
		isNew = true
	}
	p.advance(loadRun)
	return k, isNew
}

// Resync: see Oracle.
func (p *player) Resync(at Place, m *machine.Machine) (begins, lost bool, err error) {
	if !p.next(recoveryRun) {
		return true, false, p.failed()
	}
	p.recovery.read(&p.sheet, at)
	p.recovery.Apply(m)
	p.advance(recoveryRun)
	return true, p.recovery.Lost, p.failed()
}

// Result: see Oracle.
func (p *player) Result(at Place, _ uint16, m *machine.Machine) {
	if !p.next(resultRun) {
		return
	}
	which := p.sheet.number(cellOf(at, resultRegisters))
	v := Recovery{Registers: uint16(which), Unsure: uint16(which >> 16)}
	readRegisters(&p.sheet, at, resultValue, v.Registers, &v.Values)
	v.Apply(m)
	p.advance(resultRun)
}

// Used: see Oracle.
func (p *player) Used(at Place, registers uint16, m *machine.Machine) {
	for r := registers; r != 0; r &= r - 1 {
		n := bits.TrailingZeros16(r)
		m.SetGeneral(n, p.sheet.number(cellOf(at, usedValue+field(n))), machine.Confirmed)
	}
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
