package valuereport

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"wpptrace/compress/wet/machine"
	"wpptrace/query/names"
	"wpptrace/query/stepping"
)

// A Form is how numbers are printed, by its letter in gdb.
type Form byte

// The forms that are no letter, or have a meaning of their own.
const (
	Typed  Form = 0   // as the type has it
	Hex    Form = 'x' // without a sign
	String Form = 's' // bytes up to a zero
)

// ParseForm is the form of a letter: x, d, u, t or c.
func ParseForm(text string) (Form, error) {
	if len(text) == 1 && strings.Contains("xdutc", text) {
		return Form(text[0]), nil
	}
	return 0, fmt.Errorf("%q is no form: x, d, u, t and c are", text)
}

// number is a number of some bits in a form that has a letter.
func (f Form) number(value uint64, bits int) string {
	unused := max(64-bits, 0)
	value = value << unused >> unused
	signed := strconv.FormatInt(int64(value<<unused)>>unused, 10)
	switch f {
	case 'd':
		return signed
	case 'c':
		return signed + character(value)
	case 'u':
		return strconv.FormatUint(value, 10)
	case 't':
		return strconv.FormatUint(value, 2)
	}
	return "0x" + strconv.FormatUint(value, 16)
}

// Units are numbers in memory, one behind the other.
type Units struct {
	Count, Size int // Size: of each, in bytes
	Form        Form
}

// mostUnits is how many are printed at most, and of a string how many bytes.
const mostUnits = 1024

// ParseUnits reads what gdb's x has behind its slash: a number, and letters of a form and a size.
func ParseUnits(text string) (u Units, err error) {
	u = Units{Count: 1, Size: 4, Form: Hex}
	letters := strings.TrimLeft(text, "0123456789")
	if digits := text[:len(text)-len(letters)]; digits != "" {
		if u.Count, err = strconv.Atoi(digits); err != nil || u.Count < 1 || u.Count > mostUnits {
			return u, fmt.Errorf("%q is no number from 1 to %d", digits, mostUnits)
		}
	}
	for _, c := range letters {
		switch c {
		case 'b':
			u.Size = 1
		case 'h':
			u.Size = 2
		case 'w':
			u.Size = 4
		case 'g':
			u.Size = 8
		case 'a':
			u.Form, u.Size = Hex, 8
		case 'x', 'd', 'u', 't', 'c', 's':
			if u.Form = Form(c); c == 'c' {
				u.Size = 1
			}
		case 'i':
			return u, fmt.Errorf("%q: wpptrace dump --as values lists the instructions that ran", text)
		default:
			return u, fmt.Errorf("%q: a number, one of x, d, u, t, c, s and a, and one of b, h, w "+
				"and g are known", text)
		}
	}
	return u, nil
}

// AddressAt is an address in hex, what $REGISTER or a number of the name VARIABLE has, or where
// &VARIABLE is; with a number of bytes behind + or -. It fails where that is not known.
func AddressAt(m *stepping.Moment, text string) (addr uint64, err error) {
	by := uint64(0)
	if i := strings.LastIndexAny(text, "+-"); i > 0 {
		if n, err := strconv.ParseUint(strings.TrimSpace(text[i+1:]), 0, 32); err == nil {
			if by = n; text[i] == '-' {
				by = -n
			}
			text = strings.TrimSpace(text[:i])
		}
	}
	name, isPlace := strings.CutPrefix(text, "&")
	v, err := m.Variable(name)
	switch {
	case err != nil:
		addr, _, err = ParseBytes(m, text)
	case isPlace || !v.IsNumber():
		_, addr, _, err = placeAt(m, name)
	default:
		known := machine.Unknown
		if addr, known = m.Value(v); known == machine.Unknown {
			err = fmt.Errorf("%s is not known", names.Printable(text))
		}
	}
	return addr + by, err
}

// UnitsAt is what memory holds, a row for each 16 bytes. What is known of a number in part is in
// hex, with -- for each byte that is not known.
func UnitsAt(m *stepping.Moment, addr uint64, u Units) string {
	if u.Form == String {
		return fmt.Sprintf("%x: %s\n", addr, stringAt(m, addr))
	}
	var b strings.Builder
	perRow := 16 / u.Size
	for i := range u.Count {
		if i%perRow == 0 {
			fmt.Fprintf(&b, "%x:", addr)
		}
		b.WriteString(" " + unitAt(m, addr, u))
		if addr += uint64(u.Size); i%perRow == perRow-1 || i == u.Count-1 {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func unitAt(m *stepping.Moment, addr uint64, u Units) string {
	var bytes [8]byte
	held := m.Held(addr, bytes[:u.Size])
	if k := held.Knowledge(u.Size); k != machine.Unknown {
		return sure(u.Form.number(binary.LittleEndian.Uint64(bytes[:]), 8*u.Size), k)
	}
	text := "0x"
	for i := u.Size - 1; i >= 0; i-- {
		digits := "--"
		if held.Known>>i&1 != 0 {
			digits = fmt.Sprintf("%02x", bytes[i])
		}
		text += digits
	}
	if held.Known&^held.Confirmed != 0 {
		text += "?"
	}
	return text
}

// stringAt is the string at an address, with -- where it is not known any more.
func stringAt(m *stepping.Moment, addr uint64) string {
	var text []byte
	all := machine.Confirmed
	for len(text) < mostUnits {
		var b [1]byte
		k := m.Read(addr+uint64(len(text)), b[:])
		switch {
		case k == machine.Unknown && len(text) == 0:
			return "--"
		case k == machine.Unknown:
			return sure(strconv.QuoteToASCII(string(text)), all) + "--"
		case b[0] == 0:
			return sure(strconv.QuoteToASCII(string(text)), all&k)
		}
		all &= k
		text = append(text, b[0])
	}
	return sure(strconv.QuoteToASCII(string(text)), all) + "..."
}
