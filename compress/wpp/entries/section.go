package entries

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"wpptrace/compress/wpp"
)

// Kind is that of the section.
const Kind = wpp.FirstSection + 6

// A Call is a call or tail jump, and a routine of which it, or what it led to, began an activation.
type Call struct {
	Routine int // that has it: index in Snapshot.Routines
	Block   int // that ends with it: index in the routine's blocks
	Callee  int // index in Snapshot.Routines
}

// A Count is how often activations began at a call. 2^64-1: that or more.
type Count struct {
	Traced   uint64 // directly
	External uint64 // by external code, which the call had led to
}

// Counts are those of all calls that the code does not name the callee of. nil: they are not known.
type Counts map[Call]Count

// Section returns the section that Of reads. It takes time to sort the counts.
func (c Counts) Section() *wpp.Section {
	m := &EntriesSection{}
	for _, call := range slices.SortedFunc(maps.Keys(c), compare) {
		m.Routine = append(m.Routine, uint32(call.Routine))
		m.Block = append(m.Block, uint32(call.Block))
		m.Callee = append(m.Callee, uint32(call.Callee))
		m.Traced = append(m.Traced, c[call].Traced)
		m.External = append(m.External, c[call].External)
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil { // of a message of numbers
		panic(err)
	}
	return wpp.NewSection(Kind, data)
}

func compare(a, b Call) int {
	return cmp.Or(cmp.Compare(a.Routine, b.Routine), cmp.Compare(a.Block, b.Block),
		cmp.Compare(a.Callee, b.Callee))
}

// Of returns the counts of a snapshot that was read with Kind as a known one; nil: it has none. It
// fails where the section is damaged. It takes time linear in the section.
func Of(s *wpp.Snapshot) (Counts, error) {
	for section := range s.SectionsOf(Kind) {
		c, err := decode(section, s.Routines)
		if err != nil {
			return nil, fmt.Errorf("read the section of entries: %w", err)
		}
		return c, nil
	}
	return nil, nil
}

func decode(section *wpp.Section, routines []wpp.Routine) (Counts, error) {
	data, err := section.Data()
	if err != nil {
		return nil, err
	}
	m := &EntriesSection{}
	if err := proto.Unmarshal(data, m); err != nil {
		return nil, err
	}
	n := len(m.Routine)
	if len(m.Block) != n || len(m.Callee) != n || len(m.Traced) != n || len(m.External) != n {
		return nil, fmt.Errorf("it has %d routines, %d blocks, %d callees, %d and %d counts", n,
			len(m.Block), len(m.Callee), len(m.Traced), len(m.External))
	}
	c := make(Counts, n)
	for i := range m.Routine {
		call := Call{int(m.Routine[i]), int(m.Block[i]), int(m.Callee[i])}
		if max(call.Routine, call.Callee) >= len(routines) {
			return nil, fmt.Errorf("routines %d and %d are none of %d", call.Routine, call.Callee,
				len(routines))
		}
		if blocks := len(routines[call.Routine].Blocks); call.Block >= blocks {
			return nil, fmt.Errorf("block %d of routine %d is none of %d", call.Block,
				call.Routine, blocks)
		}
		if _, ok := c[call]; ok {
			return nil, fmt.Errorf("block %d of routine %d calls routine %d twice", call.Block,
				call.Routine, call.Callee)
		}
		c[call] = Count{m.Traced[i], m.External[i]}
	}
	return c, nil
}
