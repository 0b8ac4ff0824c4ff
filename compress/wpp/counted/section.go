package counted

import (
	"fmt"
	"math"
	"time"

	"google.golang.org/protobuf/proto"

	"wpptrace/compress/wpp"
)

// Kind is that of the section.
const Kind = wpp.FirstSection + 2

// Counts are how often some blocks ran between windows.
type Counts struct {
	Own   time.Duration // CPU time of its own that the program used between windows
	Sites []Site
}

// A Site is a block that was counted: it runs once whenever its probe is hit.
type Site struct {
	Routine int    // index in Snapshot.Routines
	Addr    uint64 // link-time, of the first instruction of the block
	Once    bool   // it runs once whenever the routine is called
	Slots   []Slot
}

// A Slot is a stretch of time in which a site was counted.
type Slot struct {
	Number int // slots of different sites with the same number are of the same time
	Hits   uint64
	Used   time.Duration // CPU time of the program, with what counting took of it
	Cost   time.Duration // that counting took, by calibration
}

// Own is the CPU time of the program without what counting took. Where times are known by the clock
// tick it may be below 0: a sum of many is what it seems.
func (s Slot) Own() time.Duration { return s.Used - s.Cost }

// Section returns the section that Of reads. It takes time linear in the counts.
func (c *Counts) Section() *wpp.Section {
	m := &CountedSection{OwnNs: uint64(c.Own)}
	for i := range c.Sites {
		from := &c.Sites[i]
		to := &CountedSection_Site{Routine: uint32(from.Routine), Addr: from.Addr, Once: from.Once}
		for _, s := range from.Slots {
			to.Number = append(to.Number, uint32(s.Number))
			to.Hits = append(to.Hits, s.Hits)
			to.SlotUsedNs = append(to.SlotUsedNs, uint64(s.Used))
			to.SlotCostNs = append(to.SlotCostNs, uint64(s.Cost))
		}
		m.Site = append(m.Site, to)
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil { // of a message of numbers
		panic(err)
	}
	return wpp.NewSection(Kind, data)
}

// Of returns the counts of a snapshot that was read with Kind as a known one; nil: it has none. It
// fails where the section is damaged.
func Of(s *wpp.Snapshot) (*Counts, error) {
	for section := range s.SectionsOf(Kind) {
		c, err := decode(section, s)
		if err != nil {
			return nil, fmt.Errorf("read the section of counts: %w", err)
		}
		return c, nil
	}
	return nil, nil
}

func decode(section *wpp.Section, s *wpp.Snapshot) (*Counts, error) {
	data, err := section.Data()
	if err != nil {
		return nil, err
	}
	m := &CountedSection{}
	if err := proto.Unmarshal(data, m); err != nil {
		return nil, err
	}
	c := &Counts{}
	if c.Own, err = durationOf(m.OwnNs); err != nil {
		return nil, err
	}
	for _, from := range m.Site {
		n := len(from.Number)
		switch {
		case int64(from.Routine) >= int64(len(s.Routines)):
			return nil, fmt.Errorf("routine %d is none of %d", from.Routine, len(s.Routines))
		case len(from.Hits) != n || len(from.SlotUsedNs) != n || len(from.SlotCostNs) != n:
			return nil, fmt.Errorf("slots of routine %d are incomplete", from.Routine)
		}
		site := Site{Routine: int(from.Routine), Addr: from.Addr, Once: from.Once}
		for k := range from.Number {
			slot := Slot{Number: int(from.Number[k]), Hits: from.Hits[k]}
			if slot.Used, err = durationOf(from.SlotUsedNs[k]); err != nil {
				return nil, err
			}
			if slot.Cost, err = durationOf(from.SlotCostNs[k]); err != nil {
				return nil, err
			}
			site.Slots = append(site.Slots, slot)
		}
		c.Sites = append(c.Sites, site)
	}
	return c, nil
}

func durationOf(ns uint64) (time.Duration, error) {
	if ns > math.MaxInt64 {
		return 0, fmt.Errorf("%d ns is too long", ns)
	}
	return time.Duration(ns), nil
}
