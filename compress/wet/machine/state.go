package machine

import (
	"encoding/binary"
	"fmt"
)

// AppendState appends what is known of the registers, for ParseState.
func (m *Machine) AppendState(b []byte) []byte {
	for n := range FS + 1 {
		b = append(b, byte(m.general.known[n]))
		if m.general.known[n] != 0 {
			b = binary.AppendUvarint(b, m.general.value[n])
		}
	}
	b = append(b, m.flags.value, m.flags.known, m.flags.confirmed, byte(m.vectors.rounding))
	for i := range m.vectors.registers {
		v := &m.vectors.registers[i]
		if v.known == ([32]Knowledge{}) {
			b = append(b, 0)
			continue
		}
		b = append(b, 1)
		for n, k := range v.known {
			b = append(b, byte(k), v.bytes[n])
		}
	}
	return b
}

// ParseState returns a machine with the state at the start of b, and what is behind it. It fails
// where that is cut off, or is none.
func ParseState(b []byte) (m *Machine, rest []byte, err error) {
	m = New()
	r := reader{rest: b}
	wrong := byte(0)
	for n := range FS + 1 {
		k := r.byte()
		wrong |= k &^ 0x3f
		if m.general.known[n] = parts(k); k != 0 {
			m.general.value[n] = r.uvarint()
		}
	}
	m.flags.value, m.flags.known, m.flags.confirmed = r.byte(), r.byte(), r.byte()
	m.vectors.rounding = Knowledge(r.byte())
	wrong |= (m.flags.known|m.flags.confirmed)&^AllFlags | byte(m.vectors.rounding)&^3
	for i := range m.vectors.registers {
		has := r.byte()
		wrong |= has &^ 1
		if has == 0 {
			continue
		}
		v := &m.vectors.registers[i]
		for n := range v.known {
			v.known[n], v.bytes[n] = Knowledge(r.byte()), r.byte()
			wrong |= byte(v.known[n]) &^ 3
		}
	}
	switch {
	case r.cut:
		return nil, nil, errCut
	case wrong != 0:
		return nil, nil, fmt.Errorf("it has registers of which %#x is known", wrong)
	}
	return m, r.rest, nil
}
