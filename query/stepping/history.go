package stepping

import (
	"encoding/binary"
	"errors"
	"math"
	"sort"

	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wet/memory"
	"wpptrace/query/values"
)

// ahead is how many instructions that come next are looked at, at least, for what memory holds.
const ahead = 1 << 16

// A history is what a thread did to memory in a segment, up to some instructions of it, or of those
// behind it.
type history struct {
	segment int
	insns   int  // that were looked at
	isWhole bool // no more come
	list    []touch
}

// A touch is a read or a write of 8 bytes at most, or what may have changed memory besides. It has
// no pointers: there are as many as instructions.
type touch struct {
	addr, data uint64
	insn       int32 // from the segment's first on; what comes before one is behind that before
	kind       touchKind
	size       uint8
}

type touchKind uint8

const (
	read      touchKind = iota // it has found what is known
	wrote                      // what is known
	overwrote                  // what is not known
	returned                   // from an activation with its return address there
	changed                    // external code, or a store from nobody knows where, but of no frame
	lost                       // what ran is not known, or where the frames are
)

// around is the history of the segment of a position, with what comes next.
func (x *State) around(at Position) (*history, error) {
	h := x.history
	if h != nil && h.segment == at.Segment && (h.isWhole || h.insns >= at.Insn+ahead) {
		return h, nil
	}
	h = &history{segment: at.Segment, isWhole: true}
	w := &touching{history: h, stop: at.Insn + 2*ahead}
	for n := at.Segment; n < len(x.segments.list); n++ {
		err := x.segments.list[n].Replay(0, math.MaxUint64, w)
		if errors.Is(err, errFound) {
			h.isWhole = false
			break
		}
		if err != nil {
			return nil, err
		}
	}
	x.history = h
	return h, nil
}

// touching makes a history of what is replayed.
type touching struct {
	*history
	stop   int
	symbol uint64
}

// Executed is for the replay: see wet.Observer.
func (w *touching) Executed(e *wet.Executed) error {
	if w.insns >= w.stop {
		return errFound
	}
	before := touch{insn: int32(w.insns) - 1, kind: changed}
	switch {
	case w.insns > 0 && e.Symbol > w.symbol+1: // a mark is between
		before.kind = lost
		w.list = append(w.list, before)
	case e.External:
		w.list = append(w.list, before)
	}
	w.symbol = e.Symbol
	for i := range e.Accesses {
		w.access(e, &e.Accesses[i])
	}
	w.insns++
	return nil
}

func (w *touching) access(e *wet.Executed, a *machine.Access) {
	t := touch{addr: a.Addr, insn: int32(w.insns)}
	isReturn := e.Code.Op == machine.Return
	switch {
	case a.At == machine.Unknown || a.Size == 0:
		if !a.Write && !isReturn {
			return
		}
		t.kind = changed
		if isReturn || values.ByFrame(e.Code) {
			t.kind = lost
		}
		w.list = append(w.list, t)
		return
	case isReturn:
		t.kind = returned
		w.list = append(w.list, t)
		return
	case !a.Write && a.Known == machine.Unknown:
		return
	case a.Known == machine.Unknown:
		t.kind = overwrote
	case a.Write:
		t.kind = wrote
	}
	for data := a.Data(); len(data) > 0; {
		var bytes [8]byte
		n := copy(bytes[:], data)
		t.data, t.size = binary.LittleEndian.Uint64(bytes[:]), uint8(n)
		w.list = append(w.list, t)
		data, t.addr = data[n:], t.addr+uint64(n)
	}
}

// A seeker looks for what some bytes hold at a position.
type seeker struct {
	at      int  // instruction that comes next
	began   int  // with which the activation began whose bytes they are
	isFrame bool // they are of a frame: an activation may end before they are read
	// no code writes them but what is traced: what they were is what they are
	isHidden bool
	addr     uint64
	to       []byte // 1 to 64
	want     uint64 // those that are looked for
	was      [64]byte
	wasKnown uint64
	found    uint64
}

// seek sets bytes of s.to that are looked for, and returns which. It takes a nanosecond for each
// touch from where the activation began on.
func (h *history) seek(s *seeker) uint64 {
	first := sort.Search(len(h.list), func(i int) bool { return int(h.list[i].insn) >= s.at })
	s.earlier(h.list[:first])
	s.later(h.list[first:])
	return s.found
}

// part is which bytes a touch is of, and where the first of them is in the touch's data.
func (s *seeker) part(t *touch) (bytes uint64) {
	from, to := int64(t.addr-s.addr), int64(t.addr-s.addr)+int64(t.size)
	from, to = max(from, 0), min(to, int64(len(s.to)))
	if from >= to {
		return 0
	}
	return (1<<(to-from) - 1) << from
}

func (t *touch) byteAt(addr uint64) byte { return byte(t.data >> (8 * (addr - t.addr))) }

// earlier finds what was last seen of the bytes.
func (s *seeker) earlier(list []touch) {
	left := s.want
	for i := len(list) - 1; i >= 0 && left != 0; i-- {
		t := &list[i]
		if t.kind == lost || s.isFrame && int(t.insn) < s.began {
			return
		}
		if t.kind > overwrote {
			continue
		}
		bytes := s.part(t) & left
		left &^= bytes
		if t.kind == overwrote {
			continue
		}
		for i := range s.to {
			if bytes>>i&1 != 0 {
				s.was[i] = t.byteAt(s.addr + uint64(i))
				s.wasKnown |= 1 << i
			}
		}
	}
}

// later finds what is read of the bytes before they are written.
func (s *seeker) later(list []touch) {
	left, isChanged := s.want, false
	defer func() {
		if s.isHidden { // what is not seen again is what it was
			s.find(left&s.wasKnown, func(i int) byte { return s.was[i] })
		}
	}()
	for i := range list {
		t := &list[i]
		if int(t.insn) >= s.at+ahead || left == 0 {
			return
		}
		switch t.kind {
		case lost:
			return
		case returned:
			if s.isFrame && t.addr > s.addr {
				return
			}
		case changed:
			isChanged = true
		case wrote, overwrote:
			bytes := s.part(t) & left
			if s.isHidden {
				s.find(bytes&s.wasKnown, func(i int) byte { return s.was[i] })
			}
			left &^= bytes
		case read:
			bytes := s.part(t) & left
			left &^= bytes
			for i := range s.to {
				v := t.byteAt(s.addr + uint64(i))
				isSame := s.wasKnown>>i&1 != 0 && s.was[i] == v
				if bytes>>i&1 != 0 && (isSame || !isChanged ||
					s.isHidden && s.wasKnown>>i&1 == 0) {
					s.find(1<<i, func(int) byte { return v })
				}
			}
		}
	}
}

func (s *seeker) find(bytes uint64, value func(i int) byte) {
	for i := range s.to {
		if bytes>>i&1 != 0 {
			s.to[i] = value(i)
		}
	}
	s.found |= bytes
}

// redZone is how many bytes below the stack pointer a routine may use.
const redZone = 128

// Read fills to, 1 to 64 bytes, with what memory holds. Of what others may write it is at most
// unconfirmed.
func (m *Moment) Read(addr uint64, to []byte) machine.Knowledge {
	return m.Held(addr, to).Knowledge(len(to))
}

// Held is Read that says of each byte what is known.
func (m *Moment) Held(addr uint64, to []byte) memory.Held {
	h := m.memory.Held(addr, to)
	want := ^h.Known << (64 - len(to)) >> (64 - len(to))
	if want == 0 {
		return h
	}
	stack, k := m.memory.General(machine.RSP)
	s := seeker{at: m.at.Insn, addr: addr, to: to, want: want,
		isFrame: k == machine.Unknown || addr >= stack-redZone}
	if m.began.Segment == m.at.Segment {
		s.began = m.began.Insn
	}
	for _, x := range m.hidden {
		s.isHidden = s.isHidden || addr >= x.Addr && addr+uint64(len(to)) <= x.Addr+uint64(x.Size)
	}
	known := m.history.seek(&s)
	h.Known |= known
	h.Confirmed &^= known
	return h
}
