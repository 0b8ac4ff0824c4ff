package wet

import (
	"encoding/binary"
	"fmt"

	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wpp"
)

// Counts say how a recording of values went.
type Counts struct {
	Hits      uint64 // sites that paths came to
	Missing   uint64 // of these, those whose state was lost
	Unchecked uint64 // those where too little was known to compare it
	Wrong     uint64 // those where something was not as it had been worked out
	Damaged   uint64 // bytes of states that could not be read
	Loads     uint64 // whose address is known
	Predicted uint64 // of these, those that read what the model held
	Unknown   uint64 // and those of which it is not known what they read
	// Interrupted counts hits before which a signal's handler had come: of what was loaded since
	// the one before, only what they show is known.
	Interrupted uint64
}

// Load counts a load whose value is so sure.
func (c *Counts) Load(k machine.Knowledge, predicted bool) {
	c.Loads++
	if predicted {
		c.Predicted++
	}
	if k == machine.Unknown {
		c.Unknown++
	}
}

func (c *Counts) fields() []*uint64 {
	return []*uint64{&c.Hits, &c.Missing, &c.Unchecked, &c.Wrong, &c.Damaged, &c.Loads,
		&c.Predicted, &c.Unknown, &c.Interrupted}
}

// Section returns the section that CountsOf reads.
func (c Counts) Section() *wpp.Section {
	b := binary.AppendUvarint(nil, version)
	for _, f := range c.fields() {
		b = binary.AppendUvarint(b, *f)
	}
	return wpp.NewSection(CountsKind, b)
}

// CountsOf returns the counts of a snapshot that was read with CountsKind as a known one; nil: it
// has none. It fails where the section is damaged.
func CountsOf(s *wpp.Snapshot) (*Counts, error) {
	for section := range s.SectionsOf(CountsKind) {
		data, err := section.Data()
		if err != nil {
			return nil, err
		}
		r := &reader{rest: data}
		c := &Counts{}
		if v := r.number(); v != version {
			r.fail("version %d, which another wpptrace reads", v)
		}
		for _, f := range c.fields() {
			*f = r.number()
		}
		if err := r.end(); err != nil {
			return nil, fmt.Errorf("read the section of counts of values: %w", err)
		}
		return c, nil
	}
	return nil, nil
}
