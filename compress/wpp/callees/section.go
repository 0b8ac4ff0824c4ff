package callees

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"wpptrace/compress/wpp"
)

// Kind is that of the section.
const Kind = wpp.FirstSection + 25

// An Address is where traced code calls: a stub, or a slot that holds the callee's address.
type Address struct {
	Image int    // index in Snapshot.Images
	Addr  uint64 // link-time
}

// Names are those of the functions that are called so. nil: they are not known.
type Names map[Address]string

// Section returns the section that Of reads. It takes time to sort the names.
func (n Names) Section() *wpp.Section {
	m := &CalleesSection{}
	for _, at := range slices.SortedFunc(maps.Keys(n), compare) {
		m.Image = append(m.Image, uint32(at.Image))
		m.Address = append(m.Address, at.Addr)
		m.Name = append(m.Name, strings.ToValidUTF8(n[at], "?"))
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil { // of numbers and valid text
		panic(err)
	}
	return wpp.NewSection(Kind, data)
}

func compare(a, b Address) int {
	return cmp.Or(cmp.Compare(a.Image, b.Image), cmp.Compare(a.Addr, b.Addr))
}

// Of returns the names of a snapshot that was read with Kind as a known one; nil: it has none. It
// fails where the section is damaged. It takes time linear in the section.
func Of(s *wpp.Snapshot) (Names, error) {
	for section := range s.SectionsOf(Kind) {
		n, err := decode(section, len(s.Images))
		if err != nil {
			return nil, fmt.Errorf("read the section of callees: %w", err)
		}
		return n, nil
	}
	return nil, nil
}

func decode(section *wpp.Section, images int) (Names, error) {
	data, err := section.Data()
	if err != nil {
		return nil, err
	}
	m := &CalleesSection{}
	if err := proto.Unmarshal(data, m); err != nil {
		return nil, err
	}
	if len(m.Image) != len(m.Address) || len(m.Image) != len(m.Name) {
		return nil, fmt.Errorf("it has %d images, %d addresses and %d names", len(m.Image),
			len(m.Address), len(m.Name))
	}
	n := make(Names, len(m.Name))
	for i, name := range m.Name {
		if int64(m.Image[i]) >= int64(images) {
			return nil, fmt.Errorf("image %d is none of %d", m.Image[i], images)
		}
		n[Address{int(m.Image[i]), m.Address[i]}] = name
	}
	return n, nil
}
