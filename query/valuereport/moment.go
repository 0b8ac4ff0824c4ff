package valuereport

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"wpptrace/compress/wet/machine"
	"wpptrace/query/executed"
	"wpptrace/query/names"
	"wpptrace/query/stepping"
	"wpptrace/query/values"
)

// Registers are how many registers a moment has, as RegisterAt counts them: the general ones, rip
// and the flags.
const Registers = 18

// RegisterAt is the name of a register and what it holds, ? behind it where it is not confirmed; -:
// it is not known.
func RegisterAt(m *stepping.Moment, n int) (name, text string) {
	switch n {
	case Registers - 1:
		return "eflags", flagsAt(m)
	case Registers - 2:
		return "rip", fmt.Sprintf("%#x", m.PC())
	}
	v, k := m.General(n)
	return executed.RegisterName(uint8(n)), sure(fmt.Sprintf("%#x", v), k)
}

func registerNamed(m *stepping.Moment, name string, form Form) (text string, ok bool) {
	switch name {
	case "pc":
		name = "rip"
	case "sp":
		name = "rsp"
	case "fp":
		name = "rbp"
	}
	for n := range Registers {
		if n < Registers-2 && form != Typed && executed.RegisterName(uint8(n)) == name {
			v, k := m.General(n)
			return sure(form.number(v, 64), k), true
		}
		if known, text := RegisterAt(m, n); known == name {
			return text, true
		}
	}
	return "", false
}

// Evaluate is what something has: $REGISTER, x/ADDRESS:SIZE or the name of a variable; or where a
// variable is, of & before it. It fails where there is none.
func Evaluate(m *stepping.Moment, text string, form Form) (string, error) {
	if name, ok := strings.CutPrefix(text, "$"); ok {
		if text, ok := registerNamed(m, name, form); ok {
			return text, nil
		}
		return "", fmt.Errorf("$%s is no general register of 64 bits, nor $rip or $eflags",
			names.Printable(name))
	}
	if place, ok := strings.CutPrefix(text, "x/"); ok {
		addr, size, err := ParseBytes(m, place)
		if err != nil {
			return "", err
		}
		return BytesAt(m, addr, size), nil
	}
	if name, ok := strings.CutPrefix(text, "&"); ok {
		_, addr, _, err := placeAt(m, name)
		return fmt.Sprintf("%#x", addr), err
	}
	v, err := m.Variable(text)
	if err != nil {
		plain := strings.ReplaceAll(strings.TrimLeft(text, "*"), "->", ".")
		if strings.ContainsAny(plain, "+-*/%()=<>!|^?\"' ") || isNumber(plain) {
			err = fmt.Errorf("%s: nothing is computed: VARIABLE, with parts of it as p->next, p[3], "+
				"*p and &p, and $REGISTER are known", names.Printable(text))
		}
		return "", err
	}
	return textWithin(m, v, mostWithin, form), nil
}

func isNumber(text string) bool {
	_, err := strconv.ParseInt(text, 0, 64)
	return err == nil
}

// placeAt is a variable, and where in memory it is, size bytes. It fails where it is in none.
func placeAt(m *stepping.Moment, name string) (a *values.Asked, addr uint64, size int64,
	err error) {
	if a, err = m.Variable(name); err != nil {
		return nil, 0, 0, err
	}
	addr, size, k := a.Address(m.Place.Addr, m, nil)
	if k == machine.Unknown || size < 1 {
		return nil, 0, 0, fmt.Errorf("%s is nowhere in memory here, or it is not known where",
			names.Printable(name))
	}
	return a, addr, size, nil
}

// mostFields is how many fields of a structure, or elements of an array, are printed beside each
// other; mostWithin is how many structures are within each other.
const mostFields, mostWithin = 16, 3

// TextAt is what a variable has, or a part of one, as ValueText has it: of a structure, what each
// field has.
func TextAt(m *stepping.Moment, a *values.Asked) string {
	return textWithin(m, a, mostWithin, Typed)
}

func textWithin(m *stepping.Moment, a *values.Asked, depth int, form Form) string {
	switch list := a.Parts(mostFields + 1); {
	case a.IsNumber():
		v, k := m.Value(a)
		if form != Typed {
			return sure(form.number(v, a.Bits()), k)
		}
		return ValueText(a, v, k)
	case len(list) == 0 || depth == 0:
		return "{...}"
	default:
		var text []string
		for _, part := range list[:min(len(list), mostFields)] {
			name := strings.TrimPrefix(part.String()[len(a.String()):], ".")
			if name != "" { // else it has none
				name += " = "
			}
			text = append(text, name+textWithin(m, part, depth-1, form))
		}
		if len(list) > mostFields {
			text = append(text, "...")
		}
		return "{" + strings.Join(text, ", ") + "}"
	}
}

func flagsAt(m *stepping.Moment) string {
	value, known, confirmed := m.Flags()
	var list []string
	for i, name := range []string{"CF", "PF", "AF", "ZF", "SF", "OF", "DF"} {
		k := machine.Knowledge(known>>i&1 | confirmed>>i&1<<1)
		list = append(list, name+"="+sure(strconv.Itoa(int(value>>i&1)), k))
	}
	return strings.Join(list, " ")
}

// ParseBytes is values.ParseBytes that takes $REGISTER as an address, too.
func ParseBytes(m *stepping.Moment, text string) (addr uint64, size int, err error) {
	if !strings.HasPrefix(text, "$") {
		return values.ParseBytes(text)
	}
	name, behind, _ := strings.Cut(text, ":")
	value, err := Evaluate(m, name, Hex)
	if err != nil {
		return 0, 0, err
	}
	if behind != "" {
		behind = ":" + behind
	}
	addr, size, err = values.ParseBytes(strings.TrimSuffix(value, "?") + behind)
	if err != nil {
		err = fmt.Errorf("%s is %s: %w", names.Printable(name), value, err)
	}
	return addr, size, err
}

// mostWatched is how many bytes of a variable are watched, at most.
const mostWatched = 4096

// WatchAt are the bytes that a text stands for: ADDRESS:SIZE, or a variable. a is the variable
// where that is a number, for NumberAt. It fails where a variable is in no memory.
func WatchAt(m *stepping.Moment, text string) (w stepping.Watch, a *values.Asked, err error) {
	if w.Addr, w.Size, err = ParseBytes(m, text); err == nil {
		return w, nil, nil
	}
	a, addr, size, err := placeAt(m, text)
	if err != nil {
		return w, nil, err
	}
	w = stepping.Watch{Addr: addr, Size: int(min(size, mostWatched))}
	if !a.IsNumber() || int64(a.Bits()) != 8*size {
		a = nil
	}
	return w, a, nil
}

// NumberAt is what watched bytes hold as a number, as a variable has it that is there; nil: in hex.
// Of more than eight it is the first.
func NumberAt(m *stepping.Moment, w stepping.Watch, a *values.Asked) string {
	var bytes [8]byte
	k := m.Read(w.Addr, bytes[:min(w.Size, len(bytes))])
	value := binary.LittleEndian.Uint64(bytes[:])
	if a != nil {
		return ValueText(a, value, k)
	}
	return sure(fmt.Sprintf("%#x", value), k)
}

// BytesAt is what memory holds, a row for each 16 bytes: two digits a byte, and what is known of it
// as of a register.
func BytesAt(m *stepping.Moment, addr uint64, size int) string {
	var b strings.Builder
	for size > 0 {
		var bytes [16]byte
		row := bytes[:min(size, 16)]
		held := m.Held(addr, row)
		fmt.Fprintf(&b, "%x:", addr)
		for i, v := range row {
			k := machine.Knowledge(held.Known>>i&1 | held.Confirmed>>i&1<<1)
			b.WriteString(" " + sure(fmt.Sprintf("%02x", v), k))
		}
		b.WriteByte('\n')
		size, addr = size-len(row), addr+uint64(len(row))
	}
	return b.String()
}

// sure is a text of a value as it is written: - for one that is not known.
func sure(text string, k machine.Knowledge) string {
	switch k {
	case machine.Confirmed:
		return text
	case machine.Unconfirmed:
		return text + "?"
	}
	return "-"
}
