package values

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"wpptrace/bpf/wire"
	"wpptrace/compress/ops"
	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wet/memory"
	"wpptrace/loader/loads"
)

// An oracle is that of a walk while it is recorded: it knows what hits have seen, and writes the
// log.
type oracle struct {
	recorder *Recorder
	thread   *Thread
	memory   *memory.Memory
	log      wet.Log
	cutAt    uint64 // the walker's steps, when the last segment ended
	states   queue
	hits     uint64       // of the thread, so far
	astray   bool         // hits is not known, up to the next gap
	ahead    []step       // what is walked, and what comes behind it
	wrong    bool         // what was walked since the last hit
	handled  bool         // a signal's handler comes before the next hit
	unseen   bool         // one may: no hit follows on the path
	reads    []loads.Read // of the last hit, as long as they hold
	doubted  []loads.Read // the same if stores have not gone there of which nobody knew where
	done     int          // how many of between the walk has executed: 0 or 1
	carried  int          // how often what the next hit has seen was carried back
	looked   int          // the same, for what instructions leave unknown
	after    backwards    // behind the first instruction that it was last carried back over
	held     []loads.Read // used again by recover
	between  []executed   // the same
	ran      []held       // before those of between, once that is asked for
	replay   replay
	judge    judge
	returned map[string]returned // by constant functions
	guard    uint64              // where the number is that guards return addresses
	kept     [16]uint64          // what pending registers hold
	library  library             // what is known of the function that external code is
}

// Begin begins a stretch without a hit: see wet.Oracle.
func (o *oracle) Begin(at wet.Place) (lost bool, err error) {
	o.bound()
	if o.wrong || o.judge.relied { // on a hit that does not come
		o.lose()
	}
	o.log.Begin(at, &wet.Entry{})
	o.begin()
	return false, nil
}

// Site takes the state of the hit, if it is there. What it does not agree with is taken back.
func (o *oracle) Site(at wet.Place, number int, m *machine.Machine) (lost bool, err error) {
	c := &o.recorder.counts
	c.Hits++
	s := o.match(number)
	e := wet.Entry{Forget: true, Unchecked: true}
	pending := m.Pending()
	o.lend(pending, m)
	switch {
	case s == nil:
		c.Missing++
		o.wrong = true // as far as anybody knows
	case s.Whole:
		e = o.whole(s, m)
	default:
		e = o.hashed(s, m)
	}
	o.bound()
	if s != nil && o.wrong {
		c.Wrong++
	}
	if s != nil && s.Interrupted {
		c.Interrupted++
		o.wrong = o.wrong || !o.handled
	}
	if o.wrong || o.judge.relied && e.Unchecked {
		o.lose()
		e.Forget = true
		if s != nil && s.Whole {
			e.Registers, e.HasFlags, e.Flags = 0xffff, true, s.Flags
			copy(e.Values[:], s.Registers)
		} else {
			e.Unchecked = true
		}
	}
	if o.cut() || e.Forget {
		pending = 0
	}
	if s != nil && s.Interrupted {
		e.Changed = true
		o.memory.Lose()
	}
	e.Apply(m)
	o.log.Begin(at, &e)
	o.begin()
	if s != nil {
		o.read(s, m, e.Unchecked)
	}
	o.handled = o.comesHandler()
	m.Pend(pending)
	return false, nil
}

// begin begins a stretch.
func (o *oracle) begin() {
	o.reads, o.doubted = o.reads[:0], o.doubted[:0]
	o.carried, o.looked, o.handled = 0, 0, false
	o.judge.begin()
}

// comesHandler reports whether a signal's handler comes before the next hit.
func (o *oracle) comesHandler() bool {
	s := o.states.first()
	return s != nil && s.Interrupted && !o.astray && s.Ordinal-o.hits <= 1
}

// cut begins another segment, where the one that is there takes long to replay.
func (o *oracle) cut() (isNew bool) {
	steps := o.thread.walker.Steps()
	if steps-o.cutAt+o.log.Work() < o.recorder.segment && !o.memory.IsFull() {
		return false
	}
	o.cutAt = steps
	o.recorder.end(o.log.Cut(o.thread.walker), o.thread)
	o.memory.Begin()
	o.memory.BeginSegment()
	return true
}

// bound has what was walked since the last hit be taken back where it accesses more memory than a
// replay may.
func (o *oracle) bound() { o.wrong = o.wrong || o.memory.IsTooLarge() }

// soFar copies the log, without what the next hit is to be compared with first, or has been found
// wrong.
func (o *oracle) soFar() *wet.Log {
	log := o.log.Copy()
	if o.wrong || o.judge.relied || o.memory != nil && o.memory.IsTooLarge() {
		log.Lose()
	}
	return log
}

// lose takes back what was walked since the last hit.
func (o *oracle) lose() {
	o.log.Lose()
	o.memory.Rollback()
	o.wrong = false
}

// match returns the state of the next hit, which is of a probe; nil: it is not there.
func (o *oracle) match(number int) *wire.State {
	if number < loads.FirstExtra {
		o.hits++
	}
	s := o.next(number, 0)
	if s != nil {
		o.states.pop()
	}
	return s
}

// next returns the state of the probe's hit that is so many hits further, and lets go of those of
// hits before. nil: it is not there.
func (o *oracle) next(number int, further uint64) *wire.State {
	hit := o.hits + further
	for !o.astray {
		s := o.states.first()
		switch {
		case s == nil:
			return nil
		case s.Ordinal < o.hits, s.Ordinal == o.hits && further > 0 && number < loads.FirstExtra:
			o.states.pop()
		case s.Ordinal == hit && s.Site == number:
			return s
		default:
			// paths do not come to the sites that were hit: which hit is which is not known
			o.astray = s.Ordinal == hit && max(s.Site, number) < loads.FirstExtra
			return nil
		}
	}
	return nil
}

// whole compares all registers.
func (o *oracle) whole(s *wire.State, m *machine.Machine) (e wet.Entry) {
	for n := range 16 {
		v, k := m.General(n)
		switch {
		case k == machine.Unknown:
			e.Registers |= 1 << n
			e.Values[n] = s.Registers[n]
		case v != s.Registers[n]:
			o.wrong = true
		}
	}
	if fs, k := m.General(machine.FS); k != machine.Confirmed || fs != s.Registers[16] {
		e.HasFS, e.FS = true, s.Registers[16]
		o.wrong = o.wrong || k != machine.Unknown && fs != s.Registers[16]
	}
	o.guard = s.Registers[16] + stackGuard
	// AF is left undefined by most, and used by next to nothing
	if known := o.compareFlags(s, m) | machine.AF; known != machine.AllFlags {
		e.HasFlags, e.Flags = true, s.Flags
	}
	return e
}

// hashed compares the hash of the registers.
func (o *oracle) hashed(s *wire.State, m *machine.Machine) (e wet.Entry) {
	h, known := m.Hash()
	e.Unchecked = !known
	if !known {
		o.recorder.counts.Unchecked++
	}
	o.wrong = o.wrong || known && h != s.Hash
	o.compareFlags(s, m)
	return e
}

func (o *oracle) compareFlags(s *wire.State, m *machine.Machine) (known uint8) {
	value, known, _ := m.Flags()
	if (value^s.Flags)&known != 0 {
		o.wrong = true
	}
	return known
}

// read finds out what the hit has read of memory, by the registers that are known there. Where the
// hash could not be compared that are those that are confirmed.
func (o *oracle) read(s *wire.State, m *machine.Machine, unchecked bool) {
	if len(s.Words) == 0 {
		return
	}
	var registers [17]uint64
	var unknown uint32
	for n := range registers {
		v, k := m.General(n)
		if k == machine.Unknown || unchecked && k != machine.Confirmed {
			unknown |= 1 << n
		}
		registers[n] = v
	}
	o.reads = o.readsOf(s, &registers, unknown, o.reads)
}

// readsOf appends what a hit has read of memory, by its registers, to a list.
func (o *oracle) readsOf(s *wire.State, registers *[17]uint64, unknown uint32,
	to []loads.Read) []loads.Read {
	p := o.recorder.plan
	look := s.Site
	if look >= loads.FirstExtra {
		look += len(p.Base.Sites) - loads.FirstExtra
	}
	if len(s.Words) == 0 || look >= len(p.Looks) {
		return to
	}
	r := &o.replay
	r.recorder, r.words, r.failed, r.n, r.reads = o.recorder, s.Words, s.FailedReads, 0, to
	p.Run(look, s.Outcome, s.Whole && !s.Interrupted, registers, unknown, r, r.each)
	return r.reads
}

// mostCarried is how often, between two hits, the second one's registers are looked at for what is
// not known.
const mostCarried = 16

// Load finds out what a load reads: what the thread has stored since the hit, what the hit has
// read, what nobody writes, or what the model predicts.
func (o *oracle) Load(l *wet.Load) (k machine.Knowledge, isNew bool) {
	n := len(l.Bytes)
	stored := o.memory.Stored(l.Addr, n)
	var read [64]byte
	copy(read[:], l.Bytes)
	h := l.Held
	races := o.recorder.isShared(l.Addr, n, l.Private) || (o.handled || o.unseen) && !l.Private
	if races { // what was stored, or read, before is not what is loaded, for sure
		h.Known, h.Confirmed = h.Known&stored, 0
	}
	take := func(reads []loads.Read, sure bool) {
		but := stored // these bytes
		if !sure {
			but |= h.Known
		}
		for i := range reads {
			if got := overlay(&read, l.Addr, n, but, &reads[i]); got != 0 {
				h.Known |= got
				if sure && !races {
					h.Confirmed |= got
				}
			}
		}
	}
	take(o.reads, true)
	k = h.Knowledge(n)
	if k != machine.Confirmed && stored == 0 &&
		o.recorder.fixed.read(o.recorder, l.Addr, read[:n]) {
		k = machine.Confirmed
	}
	isSealed := k == machine.Unknown && stored == 0 &&
		o.recorder.fixed.holds(o.recorder, l.Addr, read[:n])
	if isSealed {
		k = machine.Unconfirmed
	}
	if (races || isSealed) && k != machine.Confirmed && o.shown(l, read[:], k != machine.Unknown) {
		k = machine.Confirmed
	}
	// the program of the last hit has not come so far
	if k == machine.Unknown && o.carried < mostCarried {
		o.carried++
		b := o.recover(l.Place, true)
		if take(b.reads, true); b.least != 0 && stored == 0 && h.Knowledge(n) == machine.Unknown {
			if v, sure, ok := o.loaded(n); ok {
				binary.LittleEndian.PutUint64(read[:], v)
				if h.Known = ^uint64(0); sure {
					h.Confirmed = ^uint64(0)
				}
			}
		}
		o.reads = append(o.reads, b.reads...)
		o.doubted = append(o.doubted, b.doubted...)
		k = h.Knowledge(n)
	}
	if k == machine.Unknown {
		take(o.doubted, false)
		k = h.Knowledge(n)
	}
	if k == machine.Unknown && !races && o.memory.IsCalm(l.Addr, n) {
		copy(read[:], l.Bytes)
		k = machine.Unconfirmed
	}
	if races && k == machine.Unconfirmed && (o.handled || o.recorder.isLocked(l.Place)) {
		k = machine.Unknown
	}
	if k == machine.Unknown && n == 8 && l.Addr == o.guard && l.All(n) { // it never changes
		k = machine.Unconfirmed
	}
	if k == machine.Confirmed && n == 8 {
		o.recorder.fixed.learn(o.recorder, l.Addr, read[:n])
	}
	isNew = o.log.Load(l, read[:n], k)
	predicted := bytes.Equal(l.Bytes, read[:n])
	copy(l.Bytes, read[:])
	o.recorder.counts.Load(k, predicted)
	return k, isNew
}

// isLocked reports whether an instruction is atomic: what was read before is then seldom what it
// loads, as others do the same.
func (r *Recorder) isLocked(at wet.Place) bool {
	code, err := r.routine(at.Routine)
	return err == nil && code.Blocks[at.Block].Insns[at.Insn].Locked
}

// overlay copies what was read of some bytes, but for those that were stored, and returns which.
func overlay(to *[64]byte, addr uint64, n int, stored uint64, r *loads.Read) (got uint64) {
	if r.Failed {
		return 0
	}
	if ahead := addr - r.Addr; stored == 0 && ahead+uint64(n) <= uint64(r.Size) &&
		ahead < uint64(r.Size) { // all of it, as nearly always
		copy(to[:n], r.Bytes[ahead:])
		return ^uint64(0)
	}
	for i := range n {
		if at := addr + uint64(i) - r.Addr; at < uint64(r.Size) && stored>>i&1 == 0 {
			to[i] = r.Bytes[at]
			got |= 1 << i
		}
	}
	return got
}

// Doubt lets go of what the hit has read: it may not hold any more.
func (o *oracle) Doubt() { o.reads, o.doubted, o.carried = o.reads[:0], o.doubted[:0], 0 }

// Disagrees: see wet.Oracle.
func (o *oracle) Disagrees() { o.wrong = true }

// Resync finds out, of the next hit, what registers and memory held where external code has
// returned, or called.
func (o *oracle) Resync(at wet.Place, m *machine.Machine) (begins, lost bool, err error) {
	o.bound()
	if o.wrong || o.judge.relied { // and is taken back at the next hit
		o.wrong = true
		return false, false, nil
	}
	var v wet.Recovery
	b := o.recover(at, false)
	pending := uint16(leftByReturn)
	if p := o.ahead[0].path; p != nil && p.Start == ops.StartEntry {
		pending = leftByCall
	}
	for known := b.known; known != 0; known &= known - 1 {
		n := bits.TrailingZeros16(known)
		switch old, k := m.General(n); {
		case k == machine.Unknown && pending>>n&1 != 0 && b.unsure>>n&1 == 0:
			v.Pending |= 1 << n
			o.kept[n] = b.values[n]
		case k == machine.Unknown || old != b.values[n]:
			v.Registers |= 1 << n
			v.Values[n] = b.values[n]
		case k == machine.Unconfirmed && b.unsure>>n&1 == 0:
			v.Confirmed |= 1 << n
		}
	}
	v.Unsure = v.Registers & b.unsure
	o.constant(at, &b, m, &v)
	guessed := o.library.effect != loads.Any && o.thread.walker.AtOnce()
	if guessed && o.library.differs && b.holds(machine.RAX, 4) &&
		b.unsure>>machine.RAX&1 == 0 {
		o.recorder.variant.learn(&o.library.found, uint32(b.values[machine.RAX]))
	}
	if guessed && o.library.returns && b.known&(1<<machine.RAX) == 0 {
		v.Registers |= 1 << machine.RAX
		v.Unsure |= 1 << machine.RAX
		v.Values[machine.RAX] = o.library.value
	}
	v.Apply(m)
	o.log.Recover(at, &v)
	o.reads = append(o.reads[:0], b.reads...)
	o.doubted = append(o.doubted[:0], b.doubted...)
	if guessed {
		o.doubted = append(o.doubted, o.library.reads...)
		o.memory.Calm(o.library.stack, o.library.effect == loads.Heap)
	}
	o.judge.begin()
	o.handled = o.comesHandler()
	return true, false, nil
}

// mostLooked is how often, between two hits, the second one is looked at for what an instruction
// has left unknown.
const mostLooked = 64

// Result finds out, of the next hit, what an instruction has left in registers: see wet.Oracle.
func (o *oracle) Result(at wet.Place, unknown uint16, m *machine.Machine) {
	var v wet.Recovery
	if !o.wrong && o.looked < mostLooked {
		o.looked++
		o.done = 1
		o.recover(at, true)
		o.done = 0
		v.Registers, v.Values = unknown&o.after.known, o.after.values
		v.Unsure = v.Registers & o.after.unsure
	}
	v.Apply(m)
	o.log.Result(at, &v)
}

// What external code leaves behind in these registers nobody may use, when it returns and when it
// calls: nine of ten are overwritten, those that callees save are used where they are saved, if
// ever, and it seldom passes more than three arguments. The file has what they hold only where that
// is used.
const (
	leftByReturn = 1<<machine.RCX | 1<<machine.RDX | 1<<machine.RSI | 1<<machine.RDI | 0xf<<8
	leftByCall   = 0xffff &^ (1<<machine.RSP | 1<<machine.RDI | 1<<machine.RSI | 1<<machine.RDX)
)

// Used sets pending registers that an instruction uses: see wet.Oracle.
func (o *oracle) Used(at wet.Place, registers uint16, m *machine.Machine) {
	for r := registers; r != 0; r &= r - 1 {
		n := bits.TrailingZeros16(r)
		o.log.Used(at, n, o.kept[n])
	}
	o.lend(registers, m)
}

// lend sets pending registers.
func (o *oracle) lend(registers uint16, m *machine.Machine) {
	for r := registers; r != 0; r &= r - 1 {
		n := bits.TrailingZeros16(r)
		m.SetGeneral(n, o.kept[n], machine.Confirmed)
	}
}

// A replay is a process as a hit has seen it: see loads.Process.
type replay struct {
	recorder *Recorder
	words    []uint64
	failed   uint16
	n        int
	reads    []loads.Read
}

func (r *replay) each(read *loads.Read) { r.reads = append(r.reads, *read) }
