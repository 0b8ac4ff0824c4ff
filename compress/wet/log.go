package wet

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"wpptrace/compress/coding"
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
	m.Confirm()
}

func (e *Entry) say(s *sayings, at Place) {
	s.say(cellOf(at, entryBits), uint64(e.bits()), 0)
	if e.Registers != 0 {
		s.say(cellOf(at, entryRegisters), uint64(e.Registers), 0)
		sayRegisters(s, at, entryValue, e.Registers, &e.Values)
	}
	if e.HasFlags {
		s.say(cellOf(at, entryFlags), uint64(e.Flags), 0)
	}
	if e.HasFS {
		s.say(cellOf(at, entryFS), e.FS, 0)
	}
}

func (e *Entry) read(x *reading, at Place) {
	has := x.number(cellOf(at, entryBits), 0)
	*e = Entry{HasFlags: has&hasFlags != 0, HasFS: has&hasFS != 0,
		Unchecked: has&isUnchecked != 0, Forget: has&isForget != 0, Lost: has&isLost != 0,
		Changed: has&isChanged != 0}
	if has >= 2*isChanged {
		x.fail("it has an entry with flags %#x", has)
	}
	if has&hasRegisters != 0 {
		e.Registers = uint16(x.number(cellOf(at, entryRegisters), 0))
		readRegisters(x, at, entryValue, e.Registers, &e.Values)
	}
	if e.HasFlags {
		e.Flags = uint8(x.number(cellOf(at, entryFlags), 0))
	}
	if e.HasFS {
		e.FS = x.number(cellOf(at, entryFS), 0)
	}
}

func sayRegisters(s *sayings, at Place, first field, of uint16, values *[16]uint64) {
	for ; of != 0; of &= of - 1 {
		n := bits.TrailingZeros16(of)
		s.say(cellOf(at, first+field(n)), values[n], 0)
	}
}

func readRegisters(x *reading, at Place, first field, of uint16, values *[16]uint64) {
	for ; of != 0; of &= of - 1 {
		n := bits.TrailingZeros16(of)
		values[n] = x.number(cellOf(at, first+field(n)), 0)
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

func (v *Recovery) say(s *sayings, at Place) {
	if v.isEmpty() {
		s.say(cellOf(at, recoveryIsEmpty), 0, 0)
		return
	}
	s.say(cellOf(at, recoveryIsEmpty), 1, 0)
	s.say(cellOf(at, recoveryRegisters), uint64(v.Registers)|uint64(v.Pending)<<recoveryPending, 0)
	confirmed := uint64(v.Confirmed) | uint64(v.Unsure)<<unsureShift
	if v.Lost {
		confirmed |= recoveryLost
	}
	s.say(cellOf(at, recoveryConfirmed), confirmed, 0)
	sayRegisters(s, at, recoveryValue, v.Registers, &v.Values)
}

func (v *Recovery) read(x *reading, at Place) {
	if x.number(cellOf(at, recoveryIsEmpty), 0) == 0 {
		*v = Recovery{}
		return
	}
	registers := x.number(cellOf(at, recoveryRegisters), 0)
	*v = Recovery{Registers: uint16(registers), Pending: uint16(registers >> recoveryPending)}
	confirmed := x.number(cellOf(at, recoveryConfirmed), 0)
	v.Confirmed, v.Lost = uint16(confirmed), confirmed&recoveryLost != 0
	v.Unsure = uint16(confirmed >> unsureShift)
	readRegisters(x, at, recoveryValue, v.Registers, &v.Values)
}

// What a log says of a load. Nothing but asExpected is said of one that is confirmed as held.
const (
	asExpected     = iota // held, and confirmed; or neither held nor known
	asPredicted           // held, and unconfirmed
	otherwise             // confirmed; its bytes follow
	otherwiseMaybe        // unconfirmed; its bytes follow
	notKnown              // though something is held there
)

// A Log is what a thread's values are known by, beside its paths: what the model mispredicts, at
// hits, behind external code and at loads. What has happened since Begin can be taken back. The
// zero value is an empty one.
type Log struct {
	said     sayings
	open     sayings  // since Begin
	sure     uint64   // loads that the model was sure of, up to Begin
	openSure uint64   // and so far
	odd      []uint64 // the numbers of those that read otherwise, or unsurely
	kept     int      // of these, those up to Begin
	// loads of bytes that the segment had not touched before: those of open are behind these
	untouched     []untouched
	keptUntouched int
	work          uint64 // see Work
	again         uint64 // of the work of what is open: it is likely said for the whole group
	opener        opener // of the stretch
	entry         Entry
	recovery      Recovery
	at            Place    // of these
	symbols       uint64   // of the stream that have been walked
	start         *start   // nil: the thread's
	ran           []uint64 // how often each symbol of a path has, by its number
}

// sayings are what a log says, in the order of the walk.
type sayings []said

func (s *sayings) say(in cell, number, about uint64) { *s = append(*s, said{in, number, about}) }

// Work is how long it takes to read what the log says, up to Begin: as long as it takes to emulate
// so many instructions. What has been known since before the segment is likely not said by it
// alone: see Encode.
func (l *Log) Work() uint64 { return l.work }

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
	ended.keep()
	ended.opener, ended.symbols = nothing, math.MaxUint64
	w.machine.Forget(machine.Set{General: w.machine.Pending()})
	w.callers = w.callers[:0] // whoever replays the next one alone has none
	*l = Log{symbols: w.at.Symbol, start: &start{w.at, w.external, w.machine.AppendState(nil)}}
	return ended
}

// Copy returns the log as it is now, which shares what stays with it: another goroutine may Encode
// it.
func (l *Log) Copy() *Log {
	c := *l
	c.said, c.odd = slices.Clip(l.said), slices.Clone(l.odd)
	c.untouched = slices.Clone(l.untouched)
	c.open, c.ran = slices.Clone(l.open), slices.Clone(l.ran)
	return &c
}

// Encode returns the logs of a group of segments as files have them: segments of a thread, in their
// order, MostInGroup at most. It takes some microsecond for each number that was not as predicted,
// and some 100 ns for each load that the model was not sure of.
func Encode(group []*Log) Encoded {
	now := make([]*Log, len(group))
	for i, l := range group {
		now[i] = l.upToNow()
	}
	e := Encoded{segments: make([]segment, len(group))}
	runs, any := common(now)
	if any {
		e.common = appendCommon(nil, runs)
	}
	m := &image{}
	for i, l := range now {
		m.add(runs[i])
		e.segments[i] = segment{l.appendHead(nil), l.append(nil, l.without(m))}
	}
	return e
}

// An opener is what a stretch begins with.
type opener uint8

const (
	nothing opener = iota
	hit
	external
)

// Begin begins a stretch at a place, and keeps what has happened before.
func (l *Log) Begin(at Place, e *Entry) {
	l.keep()
	l.entry, l.at, l.opener = *e, at, hit
}

// Recover begins one behind external code, and says what is known there.
func (l *Log) Recover(at Place, v *Recovery) {
	l.keep()
	l.recovery, l.at, l.opener = *v, at, external
}

func (l *Log) keep() {
	before := len(l.said)
	switch l.opener {
	case hit:
		l.entry.say(&l.said, l.at)
	case external:
		l.recovery.say(&l.said, l.at)
	}
	for i := l.keptUntouched; i < len(l.untouched); i++ {
		l.untouched[i].at += len(l.said)
	}
	l.keptUntouched = len(l.untouched)
	l.said = append(l.said, l.open...)
	l.open = l.open[:0]
	for _, s := range l.said[before:] {
		l.work += s.in.field.work()
	}
	l.work -= min(l.again, l.work)
	l.again = 0
	l.sure, l.kept = l.openSure, len(l.odd)
}

// upToNow returns the log with what has happened since Begin, which it does not change.
func (l *Log) upToNow() *Log {
	if l.opener == nothing && len(l.open) == 0 {
		return l
	}
	c := l.Copy()
	c.keep()
	return c
}

// Lose takes back what has happened since Begin, and says that nothing is known of that stretch.
func (l *Log) Lose() {
	l.open, l.openSure, l.odd = l.open[:0], l.sure, l.odd[:l.kept]
	l.untouched, l.again = l.untouched[:l.keptUntouched], 0
	l.entry.Lost, l.recovery.Lost = true, true
}

// Used says what a pending register holds that an instruction uses.
func (l *Log) Used(at Place, register int, value uint64) {
	l.open.say(cellOf(at, usedValue+field(register)), value, 0)
}

// Load says what a load has read, and how sure that is: of that, what was not predicted.
func (l *Log) Load(of *Load, read []byte, k machine.Knowledge) (isNew bool) {
	predicted, held := of.OfSegment().Knowledge(len(read)), of.All(len(read))
	code := uint64(asExpected)
	switch same := held && slices.Equal(of.Bytes, read); {
	case k == machine.Unknown && held:
		code = notKnown
	case k == machine.Unknown, same && k == machine.Confirmed:
	case same:
		code = asPredicted
	case k == machine.Confirmed:
		code = otherwise
	default:
		code = otherwiseMaybe
	}
	if isSure := held && predicted == machine.Confirmed; isSure {
		l.openSure++
		if code == asExpected {
			return false
		}
		l.odd = append(l.odd, l.openSure-1)
	}
	isUntouched := of.isUntouched()
	if isUntouched {
		l.untouched = append(l.untouched, untouched{len(l.open), of.Addr, uint8(len(read))})
	}
	l.open.say(cellOf(of.Place, loadCode), code, of.state(predicted, held))
	if code == otherwise || code == otherwiseMaybe {
		beside := of.beside()
		for i := 0; i < len(read); i += 8 {
			var word [8]byte
			copy(word[:], read[i:])
			n := binary.LittleEndian.Uint64(word[:])
			l.open.say(cellOf(of.Place, loadWord+field(i/8)), n, beside)
			beside = n
			if isUntouched && slices.Equal(of.Bytes, read) {
				l.again += loadWord.work()
			}
		}
		return true
	}
	return k != predicted && k != machine.Unknown
}

// Result says what is known of the registers that an instruction has left unknown.
func (l *Log) Result(at Place, v *Recovery) {
	if v.Registers == 0 {
		l.open.say(cellOf(at, resultIsEmpty), 0, 0)
		return
	}
	l.open.say(cellOf(at, resultIsEmpty), 1, 0)
	l.open.say(cellOf(at, resultRegisters), uint64(v.Registers)|uint64(v.Unsure)<<16, 0)
	sayRegisters(&l.open, at, resultValue, v.Registers, &v.Values)
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
func (l *Log) Bytes() uint64 {
	return 32*uint64(cap(l.said)+cap(l.open)) + 8*uint64(cap(l.odd)+cap(l.ran)) +
		24*uint64(cap(l.untouched))
}

// appendHead appends where the log begins, and how often each symbol has run in it: of a thread's
// only log, the paths say that.
func (l *Log) appendHead(b []byte) []byte {
	b = l.start.append(b)
	if isOnly := l.start == nil && l.symbols != math.MaxUint64; isOnly {
		return binary.AppendUvarint(b, 0)
	}
	var short, rest []byte
	next := 0
	for symbol, ran := range l.ran {
		if ran == 0 {
			continue
		}
		gap, more := uint64(symbol-next), ran-1
		next = symbol + 1
		short = append(short, byte(min(gap, tooLong)<<4|min(more, tooLong)))
		for _, n := range [2]uint64{gap, more} {
			if n >= tooLong {
				rest = binary.AppendUvarint(rest, n-tooLong)
			}
		}
	}
	return append(append(binary.AppendUvarint(b, uint64(len(short))), short...), rest...)
}

// tooLong is a number of four bits that stands for more, which follow behind all such numbers.
const tooLong = 15

// append appends the log, which says some things.
func (l *Log) append(b []byte, all sayings) []byte {
	b = binary.AppendUvarint(b, l.symbols)
	var odd []byte
	next := uint64(0)
	for _, n := range l.odd {
		odd = binary.AppendUvarint(odd, n-next)
		next = n + 1
	}
	b = append(binary.AppendUvarint(b, uint64(len(odd))), odd...)
	b = binary.AppendUvarint(b, uint64(len(all)))
	t := newTranscript(coding.NewWriter(nil, tableSize(len(all))), len(all))
	for _, s := range all {
		t.code(s)
	}
	coded := t.choices.Finish()
	return append(binary.AppendUvarint(b, uint64(len(coded))), coded...)
}
