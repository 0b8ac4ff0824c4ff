package processor_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// A form is an instruction as the manuals write it: prefixes, opcode bytes, "/r" or "/0" to "/7" of
// a ModRM byte ("/m": of memory alone, "/R": of a register alone), "+r" of a register in the
// opcode, and ib, iw, iz or iv of an immediate. Before that, which widths it has: b of bytes, v of
// 2, 4 and 8 bytes, y of 4 and 8, w without 8; "q" none.
type form struct {
	widths string
	text   string
}

func forms() (all []form) {
	add := func(widths string, texts ...string) {
		for _, text := range texts {
			all = append(all, form{widths, text})
		}
	}
	for row := 0; row < 8; row++ {
		o := func(n int) string { return fmt.Sprintf("%02x", row*8+n) }
		add("b", o(0)+" /r", o(2)+" /r", o(4)+" ib", fmt.Sprintf("80 /%d ib", row))
		add("v", o(1)+" /r", o(3)+" /r", o(5)+" iz", fmt.Sprintf("81 /%d iz", row),
			fmt.Sprintf("83 /%d ib", row))
		add("b", fmt.Sprintf("c0 /%d ib", row), fmt.Sprintf("d0 /%d", row),
			fmt.Sprintf("d2 /%d", row))
		add("v", fmt.Sprintf("c1 /%d ib", row), fmt.Sprintf("d1 /%d", row),
			fmt.Sprintf("d3 /%d", row))
		if row != 1 {
			immediate := map[bool]string{true: " ib", false: ""}[row == 0]
			add("b", fmt.Sprintf("f6 /%d%s", row, immediate))
			add("v", fmt.Sprintf("f7 /%d%s", row, strings.Replace(immediate, "b", "z", 1)))
		}
	}
	add("b", "84 /r", "86 /r", "88 /r", "8a /r", "c6 /0 ib", "a8 ib", "b0+r ib", "fe /0", "fe /1")
	add("v", "85 /r", "87 /r", "89 /r", "8b /r", "8d /m", "c7 /0 iz", "a9 iz", "b8+r iv", "ff /0",
		"ff /1", "69 /r iz", "6b /r ib", "0faf /r", "98", "99", "0fb6 /r", "0fb7 /r", "0fbe /r",
		"0fbf /r", "63 /r", "90+r")
	add("q", "50+r", "58+r", "68 iz", "6a ib", "ff /6", "8f /0", "6650+r", "6658+r", "c9", "9c",
		"9e", "9f", "f5", "f8", "f9", "fc", "fd", "0f1f /0", "90", "d7")
	for c := 0; c < 16; c++ {
		add("v", fmt.Sprintf("0f%02x /r", 0x40+c))
		add("b", fmt.Sprintf("0f%02x /0", 0x90+c))
	}
	add("v", "0fa3 /r", "0fab /r", "0fb3 /r", "0fbb /r", "0fba /4 ib", "0fba /5 ib", "0fba /6 ib",
		"0fba /7 ib", "0fa4 /r ib", "0fa5 /r", "0fac /r ib", "0fad /r", "0fbc /r", "0fbd /r",
		"f3 0fbc /r", "f3 0fbd /r", "f3 0fb8 /r", "0fb1 /r", "0fc1 /r", "0f38f0 /m", "0f38f1 /m",
		"f2 0f38f1 /r")
	add("b", "0fb0 /r", "0fc0 /r", "f2 0f38f0 /r")
	add("y", "0fc3 /m", "0fc8+r", "66 0f38f6 /r", "f3 0f38f6 /r", "0fc7 /1m")
	for _, prefix := range []string{"", "f3 ", "f2 "} {
		add("b", prefix+"a4", prefix+"a6", prefix+"aa", prefix+"ac", prefix+"ae")
		add("v", prefix+"a5", prefix+"a7", prefix+"ab", prefix+"ad", prefix+"af")
	}
	add("x", "V2 0 f2 /r", "V2 0 f3 /1", "V2 0 f3 /2", "V2 0 f3 /3", "V2 0 f5 /r", "V2 2 f5 /r",
		"V2 3 f5 /r", "V2 3 f6 /r", "V2 0 f7 /r", "V2 1 f7 /r", "V2 2 f7 /r", "V2 3 f7 /r",
		"V3 3 f0 /r ib")
	return all
}

// lockable are the forms that may have a lock prefix, in front of memory.
func lockable(text string) bool {
	o, err := strconv.ParseUint(strings.Fields(text)[0], 16, 32)
	if err != nil {
		return false
	}
	group := strings.Contains(text, "/7")
	switch {
	case o < 0x38:
		return o&7 < 2
	case o == 0x80 || o == 0x81 || o == 0x83:
		return !group
	case o == 0xf6 || o == 0xf7:
		return strings.Contains(text, "/2") || strings.Contains(text, "/3")
	case o == 0xfe || o == 0xff:
		return strings.Contains(text, "/0") || strings.Contains(text, "/1")
	case o == 0x0fba:
		return !strings.Contains(text, "/4")
	}
	switch o {
	case 0x0fab, 0x0fb3, 0x0fbb, 0x0fb0, 0x0fb1, 0x0fc0, 0x0fc1, 0x0fc7:
		return true
	}
	return false
}

// encode returns an instruction of a form, with operands that are drawn.
func (f form) encode(r *rand.Rand) []byte {
	width := f.widths[0]
	size := map[byte][]int{'b': {1}, 'v': {2, 4, 8}, 'y': {4, 8}, 'w': {2, 4}, 'q': {4},
		'x': {4, 8}}[width]
	e := encoder{r: r, size: size[r.IntN(len(size))]}
	if lockable(f.text) && r.IntN(8) == 0 {
		e.locked = true
	}
	for _, word := range strings.Fields(f.text) {
		e.word(word)
	}
	return e.bytes(width == 'x')
}

// An encoder puts an instruction together.
type encoder struct {
	r         *rand.Rand
	size      int
	locked    bool
	none      bool // vvvv names no register
	prefix    []byte
	vex       []byte // map, pp, then the opcode
	opcode    []byte
	rex       byte
	modRM     []byte
	immediate []byte
}

func (e *encoder) word(w string) {
	switch {
	case w == "ib":
		e.number(1)
	case w == "iz":
		e.number(min(e.size, 4))
	case w == "iv":
		e.number(e.size)
	case strings.HasPrefix(w, "V"):
		e.vex = []byte{w[1] - '0'}
	case len(w) == 1:
		e.vex = append(e.vex, w[0]-'0')
	case w[0] == '/':
		e.operands(w[1:])
	default:
		register := strings.HasSuffix(w, "+r")
		w = strings.TrimSuffix(w, "+r")
		if (w == "f2" || w == "f3" || w == "66") && len(e.opcode) == 0 && e.vex == nil {
			n, _ := strconv.ParseUint(w, 16, 8)
			e.prefix = append(e.prefix, byte(n))
			return
		}
		for i := 0; i < len(w); i += 2 {
			n, err := strconv.ParseUint(w[i:i+2], 16, 8)
			if err != nil {
				panic(w)
			}
			if i == 0 && n == 0x66 {
				e.prefix = append(e.prefix, 0x66)
				continue
			}
			e.opcode = append(e.opcode, byte(n))
		}
		if register {
			n := byte(e.r.IntN(16))
			e.opcode[len(e.opcode)-1] |= n & 7
			e.rex |= n >> 3
		}
	}
}

func (e *encoder) number(size int) {
	v := edge(e.r)
	for range size {
		e.immediate = append(e.immediate, byte(v))
		v >>= 8
	}
}

// operands draws a ModRM byte and what follows it.
func (e *encoder) operands(what string) {
	reg, rm := byte(e.r.IntN(16)), byte(e.r.IntN(16))
	memory := e.r.IntN(2) == 0 || e.locked
	switch {
	case what == "m":
		memory = true
	case what == "R":
		memory = false
	case what != "r":
		reg = what[0] - '0'
		if len(what) > 1 {
			memory = what[1] == 'm'
		}
	}
	e.rex |= reg >> 3 << 2
	if !memory {
		e.rex |= rm >> 3
		e.modRM = []byte{0xc0 | reg&7<<3 | rm&7}
		return
	}
	mod := byte(e.r.IntN(3))
	m := []byte{mod<<6 | reg&7<<3 | rm&7}
	e.rex |= rm >> 3
	if rm&7 == 4 {
		index := byte(e.r.IntN(16))
		e.rex |= index >> 3 << 1
		base := byte(e.r.IntN(8))
		m = append(m, byte(e.r.IntN(4))<<6|index&7<<3|base)
		if base == 5 && mod == 0 {
			mod = 2
		}
	} else if rm&7 == 5 && mod == 0 {
		mod = 2 // relative to the instruction: 4 bytes too
	}
	switch mod {
	case 1:
		m = append(m, byte(e.r.IntN(256)))
	case 2:
		m = append(m, byte(e.r.IntN(256)), byte(e.r.IntN(2)), 0, 0)
	}
	e.modRM = m
}

func (e *encoder) bytes(vex bool) (b []byte) {
	if vex {
		inverted := ^e.rex
		w := byte(0)
		if e.size == 8 {
			w = 0x80
		}
		b = append(b, 0xc4, inverted&4<<5|inverted&2<<5|inverted&1<<5|e.vex[0],
			w|byte(e.r.IntN(16))<<3|e.vex[1])
		if len(e.vex) > 2 { // the length
			b[2] |= e.vex[2] << 2
		}
		if e.none || string(e.opcode) == "\xf0" { // rorx
			b[2] |= 0x78
		}
		return append(append(append(b, e.opcode...), e.modRM...), e.immediate...)
	}
	if e.locked {
		b = append(b, 0xf0)
	}
	b = append(b, e.prefix...)
	if e.size == 2 {
		b = append(b, 0x66)
	}
	if e.size == 8 {
		e.rex |= 8
	}
	if e.rex != 0 || e.size == 1 && e.r.IntN(3) == 0 {
		b = append(b, 0x40|e.rex)
	}
	return append(append(append(b, e.opcode...), e.modRM...), e.immediate...)
}

// edge draws a number: any, or one near an edge.
func edge(r *rand.Rand) uint64 {
	switch r.IntN(8) {
	case 0:
		return 0
	case 1:
		return ^uint64(0)
	case 2:
		return uint64(r.IntN(256))
	case 3:
		return 1<<(8<<r.IntN(4)-1) - uint64(r.IntN(3)) + 1
	case 4:
		return -uint64(r.IntN(256))
	case 5:
		return uint64(r.Uint32())
	}
	return r.Uint64()
}
