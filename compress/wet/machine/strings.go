package machine

// How many rounds of a string instruction are run at most, upwards and downwards, where accesses do
// not become one: where it has more, what it leaves is unknown.
const (
	mostRounds     = 1 << 20
	mostRoundsDown = 1 << 10
)

// strings is for the string instructions.
func (s *step) strings() Outcome {
	falls := Outcome{Way: Falls, Known: Confirmed, To: s.m.general.value[Next]}
	rounds, k := uint64(1), Confirmed
	if s.in.Repeat != Once {
		if rounds, k = s.m.general.get(RCX, 8); rounds == 0 && k != Unknown {
			return falls
		}
	}
	k &= s.m.flags.of(DF)
	most, step := uint64(mostRounds), uint64(s.in.Size)
	if s.m.flags.value&DF != 0 {
		most, step = mostRoundsDown, -step
	}
	compares := s.in.Op == Cmps || s.in.Op == Scas
	if k == Unknown || rounds > most && !compares {
		s.loseString()
		return falls
	}
	s.doubtString(k)
	for n := uint64(0); n < rounds; n++ {
		if n == most {
			s.loseString()
			break
		}
		differ, ke := s.round(step)
		if s.in.Repeat == Once {
			break
		}
		s.m.general.set(RCX, s.m.general.value[RCX]-1, 8, s.m.general.known[RCX].whole())
		if !compares {
			continue
		}
		if ke == Unknown { // when it ends is not known
			s.loseString()
			break
		}
		s.m.general.known[RCX] &= whole(ke)
		s.doubtString(ke)
		if differ == (s.in.Repeat == RepeatEqual) {
			break
		}
	}
	return falls
}

// doubtString lets the addresses of a string instruction depend on what so much is known of.
func (s *step) doubtString(k Knowledge) {
	if s.in.Op != Lods {
		s.m.general.known[RDI] &= whole(k)
	}
	if s.in.Op != Stos && s.in.Op != Scas {
		s.m.general.known[RSI] &= whole(k)
	}
}

// round is one of a string instruction. It returns, of what compares, whether the two differ.
func (s *step) round(by uint64) (differ bool, k Knowledge) {
	size := s.in.Size
	var a, b uint64
	var ka, kb Knowledge
	switch s.in.Op {
	case Movs, Cmps, Lods:
		s.m.port.at, s.m.port.known = s.m.general.address(&s.in.Src)
		a, ka = s.m.port.load(size, s.mem)
		s.m.port.join()
		s.m.general.add(RSI, by)
	default:
		a, ka = s.m.general.get(RAX, size)
	}
	if s.in.Op == Lods {
		s.m.general.set(RAX, a, size, ka)
		return false, Confirmed
	}
	s.m.port.at, s.m.port.known = s.m.general.value[RDI], s.m.general.known[RDI].whole()
	if s.in.Op == Movs || s.in.Op == Stos {
		s.m.port.store(a, size, ka, s.mem)
		s.m.port.join()
		s.m.general.add(RDI, by)
		return false, Confirmed
	}
	b, kb = s.m.port.load(size, s.mem)
	s.m.port.join()
	s.m.general.add(RDI, by)
	s.m.flags.set(Arithmetic, 0, subtracted(a, b, (a-b)&maskOf(size), size), ka&kb)
	return a != b, ka & kb
}

// loseString makes unknown what a string instruction may write.
func (s *step) loseString() {
	set := Set{General: 1 << RDI}
	switch s.in.Op {
	case Movs:
		set.General |= 1 << RSI
	case Cmps:
		set.General, set.Flags = set.General|1<<RSI, Arithmetic
	case Lods:
		set.General = 1<<RSI | 1<<RAX
	case Scas:
		set.Flags = Arithmetic
	}
	compares := s.in.Op == Cmps || s.in.Op == Scas
	if s.in.Repeat != Once && compares {
		set.General |= 1 << RCX
	}
	s.m.general.wrote |= uint32(set.General)
	s.m.Forget(set)
	if s.in.Repeat != Once && !compares { // it ends when this is 0
		s.m.general.set(RCX, 0, 8, Confirmed)
	}
	s.m.port.at, s.m.port.known = 0, Unknown
	if s.in.Op != Stos {
		s.m.port.access(0)
	}
	if s.in.Op == Movs || s.in.Op == Stos {
		s.m.port.storeUnknown(0, s.mem)
	}
}
