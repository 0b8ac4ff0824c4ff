package faults

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"wpptrace/compress/wpp"
)

// Kind is that of the section.
const Kind = wpp.FirstSection + 26

// A Fault is where a thread ended, since an instruction that it had begun faulted.
type Fault struct {
	Thread  int    // index in Snapshot.Threads
	Routine int    // index in Snapshot.Routines
	Addr    uint64 // link-time, of the instruction
}

// List are faults, by thread: each has one at most.
type List []Fault

// Section returns the section that Of reads.
func (l List) Section() *wpp.Section {
	m := &FaultsSection{}
	for _, f := range l {
		m.Thread = append(m.Thread, uint32(f.Thread))
		m.Routine = append(m.Routine, uint32(f.Routine))
		m.Addr = append(m.Addr, f.Addr)
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil { // of a message of numbers
		panic(err)
	}
	return wpp.NewSection(Kind, data)
}

// Of returns the faults of a snapshot that was read with Kind as a known one. It fails where the
// section is damaged.
func Of(s *wpp.Snapshot) (List, error) {
	for section := range s.SectionsOf(Kind) {
		l, err := decode(section, s)
		if err != nil {
			return nil, fmt.Errorf("read the section of faults: %w", err)
		}
		return l, nil
	}
	return nil, nil
}

func decode(section *wpp.Section, s *wpp.Snapshot) (l List, err error) {
	data, err := section.Data()
	if err != nil {
		return nil, err
	}
	m := &FaultsSection{}
	if err := proto.Unmarshal(data, m); err != nil {
		return nil, err
	}
	if len(m.Thread) != len(m.Routine) || len(m.Thread) != len(m.Addr) {
		return nil, fmt.Errorf("it has %d threads, %d routines and %d addresses", len(m.Thread),
			len(m.Routine), len(m.Addr))
	}
	for i, addr := range m.Addr {
		f := Fault{int(m.Thread[i]), int(m.Routine[i]), addr}
		switch {
		case f.Thread >= len(s.Threads) || i > 0 && f.Thread <= l[i-1].Thread:
			return nil, fmt.Errorf("thread %d of %d is not in its place", f.Thread, len(s.Threads))
		case f.Routine >= len(s.Routines):
			return nil, fmt.Errorf("routine %d is none of %d", f.Routine, len(s.Routines))
		}
		l = append(l, f)
	}
	return l, nil
}
