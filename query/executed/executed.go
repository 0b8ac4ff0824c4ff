// Package executed writes what an executed instruction did as text: the notation of values in
// dumps, slices and tables.
package executed

import (
	"math/bits"
	"strconv"

	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
)

// generalNames are those of the general registers by their hardware numbers.
var generalNames = [16]string{"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9",
	"r10", "r11", "r12", "r13", "r14", "r15"}

// RegisterName is the name, of all 64 bits, of a general register by its hardware number, 0 to 15.
func RegisterName(number uint8) string { return generalNames[number&15] }

// Append writes what an executed instruction wrote to general registers, read from memory and wrote
// there: REG=HEX, r[ADDRESS:SIZE]=HEX and w[ADDRESS:SIZE]=HEX, a space before each. A value with ?
// behind it is not confirmed; - stands for one that is not known.
func Append(line []byte, e *wet.Executed) []byte {
	for _, r := range e.Written {
		line = append(append(append(line, ' '), RegisterName(r.Number)...), '=')
		if r.Known == machine.Unknown {
			line = append(line, '-')
			continue
		}
		line = appendSure(strconv.AppendUint(line, r.Value, 16), r.Known)
	}
	for i := range e.Accesses {
		line = AppendAccess(line, &e.Accesses[i])
	}
	return line
}

// AppendAll writes what Append does, then f[FLAGS]=HEX, the flags that were used and what they
// were, both as the processor has them, and xmmN=HEX, the lower 16 bytes of each vector register
// that was written.
func AppendAll(line []byte, e *wet.Executed) []byte {
	line = Append(line, e)
	if used := e.FlagsUsed; used != 0 {
		line = append(line, " f["...)
		line = strconv.AppendUint(line, uint64(machine.Architectural(used)), 16)
		line = append(line, "]="...)
		switch f := e.FlagsBefore; {
		case f.Known&used != used:
			line = append(line, '-')
		default:
			k := machine.Confirmed
			if f.Confirmed&used != used {
				k = machine.Unconfirmed
			}
			value := uint64(machine.Architectural(f.Value & used))
			line = appendSure(strconv.AppendUint(line, value, 16), k)
		}
	}
	for written := e.Code.WrittenVectors(); written != 0; written &= written - 1 {
		n := bits.TrailingZeros16(written)
		line = append(strconv.AppendInt(append(line, " xmm"...), int64(n), 10), '=')
		data, sure := e.Vector(n)
		k := machine.Confirmed
		for _, s := range sure[:16] {
			k &= s
		}
		if k == machine.Unknown {
			line = append(line, '-')
			continue
		}
		line = appendSure(AppendNumber(line, data[:16]), k)
	}
	return line
}

// AppendAccess writes one access to memory.
func AppendAccess(line []byte, a *machine.Access) []byte {
	line = append(AppendPlace(line, a), '=')
	k := Sureness(a)
	if k == machine.Unknown {
		return append(line, '-')
	}
	return appendSure(AppendNumber(line, a.Data()), k)
}

// AppendPlace writes which way memory is accessed, and where, a space before it.
func AppendPlace(line []byte, a *machine.Access) []byte {
	way := " r["
	if a.Write {
		way = " w["
	}
	line = append(line, way...)
	if a.At == machine.Unknown {
		line = append(line, '-')
	} else {
		line = strconv.AppendUint(line, a.Addr, 16)
	}
	line = append(line, ':')
	if a.Size == 0 {
		line = append(line, '-')
	} else {
		line = strconv.AppendInt(line, int64(a.Size), 10)
	}
	return append(line, ']')
}

// Sureness says how sure it is what an access read or wrote, and where.
func Sureness(a *machine.Access) machine.Knowledge {
	switch {
	case a.Size == 0:
		return machine.Unknown
	case a.At != machine.Confirmed:
		return a.Known & machine.Unconfirmed
	}
	return a.Known
}

const digits = "0123456789abcdef"

// AppendNumber writes the number, in hex, that bytes are in memory: one at least.
func AppendNumber(line []byte, b []byte) []byte {
	n := len(b)
	for n > 1 && b[n-1] == 0 {
		n--
	}
	line = strconv.AppendUint(line, uint64(b[n-1]), 16)
	for n--; n > 0; n-- {
		line = append(line, digits[b[n-1]>>4], digits[b[n-1]&15])
	}
	return line
}

func appendSure(line []byte, k machine.Knowledge) []byte {
	if k != machine.Confirmed {
		line = append(line, '?')
	}
	return line
}
