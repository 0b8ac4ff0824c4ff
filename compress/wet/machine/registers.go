package machine

// A file is the general registers, and what addresses are made of besides.
type file struct {
	value   [32]uint64
	known   [32]parts
	wrote   uint32 // by the last step
	pending uint32 // see Machine.Pend
}

// write notes that a register is written.
func (f *file) write(n uint8) {
	f.wrote |= 1 << n
	f.pending &^= 1 << n
}

// parts is what is known of a general register: of its lowest byte, of the one above, of the rest,
// two bits each from the lowest on.
type parts uint8

func whole(k Knowledge) parts    { return parts(k) * 0x15 }
func (p parts) whole() Knowledge { return Knowledge(p & (p >> 2) & (p >> 4) & 3) }

// get returns the low bytes of a register.
func (f *file) get(n, size uint8) (uint64, Knowledge) {
	v, p := f.value[n&31], f.known[n&31]
	switch size {
	case 8:
		return v, p.whole()
	case 4:
		return uint64(uint32(v)), p.whole()
	case 2:
		return uint64(uint16(v)), Knowledge(p & (p >> 2) & 3)
	}
	return uint64(uint8(v)), Knowledge(p & 3)
}

// set gives the low bytes of a register a value. Above 4 bytes it is cleared, above fewer it stays.
func (f *file) set(n uint8, v uint64, size uint8, k Knowledge) {
	n &= 31
	f.write(n)
	switch r := &f.value[n]; size {
	case 8:
		*r, f.known[n] = v, whole(k)
	case 4:
		*r, f.known[n] = uint64(uint32(v)), whole(k)
	case 2:
		*r = *r&^0xffff | v&0xffff
		f.known[n] = f.known[n]&0x30 | parts(k)*5
	default:
		*r = *r&^0xff | v&0xff
		f.known[n] = f.known[n]&^3 | parts(k)
	}
}

// second returns the second byte of a register.
func (f *file) second(n uint8) (uint64, Knowledge) {
	return f.value[n&3] >> 8 & 0xff, Knowledge(f.known[n&3] >> 2 & 3)
}

func (f *file) setSecond(n uint8, v uint64, k Knowledge) {
	n &= 3
	f.write(n)
	f.value[n] = f.value[n]&^0xff00 | v&0xff<<8
	f.known[n] = f.known[n]&^0x0c | parts(k)<<2
}

// add adds to a register what is known for sure.
func (f *file) add(n uint8, v uint64) {
	f.value[n&31] += v
	f.write(n & 31)
}

// setPair sets RDX:RAX, of bytes AH:AL.
func (f *file) setPair(high, low uint64, size uint8, kh, kl Knowledge) {
	f.set(RAX, low, size, kl)
	if size == 1 {
		f.setSecond(RAX, high, kh)
		return
	}
	f.set(RDX, high, size, kh)
}

// address returns the address of an operand.
func (f *file) address(o *Operand) (uint64, Knowledge) {
	base, index, segment := o.Reg&31, o.Index&31, o.Segment&31
	a := f.value[base] + f.value[index]<<(o.Scale&3) + uint64(o.Disp)
	if o.Short {
		a = uint64(uint32(a))
	}
	return a + f.value[segment], (f.known[base] & f.known[index] & f.known[segment]).whole()
}
