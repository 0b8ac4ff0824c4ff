package windows

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"wpptrace/compress/wpp"
)

// Kind is that of the section.
const Kind = wpp.FirstSection + 1

// Lists have, for each thread of a snapshot, the numbers of the windows that have ended in which it
// ran, from 1 on, ascending.
type Lists [][]uint64

// Section returns the section that Of reads. It takes time linear in the lists.
func (l Lists) Section() *wpp.Section {
	m := &WindowsSection{}
	for _, list := range l {
		to, last := &WindowsSection_Thread{}, uint64(0)
		for _, n := range list {
			to.After, last = append(to.After, n-last), n
		}
		m.Thread = append(m.Thread, to)
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil { // of a message of numbers
		panic(err)
	}
	return wpp.NewSection(Kind, data)
}

// Of returns the lists of a snapshot that was read with Kind as a known one; nil: it has none. It
// fails where the section is damaged.
func Of(s *wpp.Snapshot) (Lists, error) {
	for section := range s.SectionsOf(Kind) {
		l, err := decode(section, len(s.Threads))
		if err != nil {
			return nil, fmt.Errorf("read the section of windows: %w", err)
		}
		return l, nil
	}
	return nil, nil
}

func decode(section *wpp.Section, threads int) (Lists, error) {
	data, err := section.Data()
	if err != nil {
		return nil, err
	}
	m := &WindowsSection{}
	if err := proto.Unmarshal(data, m); err != nil {
		return nil, err
	}
	if len(m.Thread) != threads {
		return nil, fmt.Errorf("it has %d threads, and the snapshot %d", len(m.Thread), threads)
	}
	l := make(Lists, threads)
	for i, from := range m.Thread {
		last := uint64(0)
		for _, n := range from.After {
			if n == 0 || last+n < last {
				return nil, fmt.Errorf("the windows of thread %d do not ascend", i)
			}
			last += n
			l[i] = append(l[i], last)
		}
	}
	return l, nil
}
