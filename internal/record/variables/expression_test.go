package variables

import (
	"testing"

	located "wpptrace/compress/wpp/variables"
)

func TestParse(t *testing.T) {
	place := func(where located.Where, base uint8, offset int64) expression {
		return expression{Place: located.Place{Where: where, Base: base, Offset: offset}}
	}
	for name, c := range map[string]struct {
		code []byte
		want expression
	}{
		"nothing": {nil, expression{}},
		"addr": {append([]byte{3, 0x10, 0x40}, make([]byte, 6)...),
			place(located.Memory, 17, 0x4010)},
		"addr cut off":      {[]byte{3, 0x10}, expression{}},
		"rdi":               {[]byte{0x55}, place(located.Register, 8, 0)},
		"xmm2":              {[]byte{0x63}, place(located.Vector, 0, 2)},
		"a piece":           {[]byte{0x55, 0x93, 4}, expression{}},
		"rbp-20":            {[]byte{0x76, 0x6c}, place(located.Memory, 6, -20)},
		"rbp-20, its value": {[]byte{0x76, 0x6c, 0x9f}, place(located.Number, 6, -20)},
		"far":               {[]byte{0x77, 0x80, 0x7f}, place(located.Memory, 5, -128)},
		"frame": {[]byte{0x91, 0x58},
			expression{located.Place{Where: located.Memory, Offset: -40}, true, false}},
		"CFA": {[]byte{0x9c},
			expression{located.Place{Where: located.Memory}, false, true}},
		"sum":                {[]byte{0x75, 1, 0x23, 0x80, 1}, place(located.Memory, 8, 129)},
		"5":                  {[]byte{0x35, 0x9f}, place(located.Number, 0, 5)},
		"-1 of a byte":       {[]byte{0x09, 0xff, 0x9f}, place(located.Number, 0, -1)},
		"1000 of two":        {[]byte{0x0a, 0xe8, 3, 0x9f}, place(located.Number, 0, 1000)},
		"constu":             {[]byte{0x10, 0x80, 1, 0x9f}, place(located.Number, 0, 128)},
		"consts":             {[]byte{0x11, 0x7f, 0x9f}, place(located.Number, 0, -1)},
		"the address 5":      {[]byte{0x35}, expression{}},
		"an entry's value":   {[]byte{0xa3, 1, 0x55, 0x9f}, expression{}},
		"thread-local":       {[]byte{0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0xe0}, expression{}},
		"a number that ends": {[]byte{0x76, 0x80}, expression{}},
		"what is there":      {[]byte{0x76, 0, 0x06}, expression{}},
	} {
		if got := parse(c.code); got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}

// FuzzParse: whatever an expression is, it is one place or is not known.
func FuzzParse(f *testing.F) {
	f.Add([]byte{0x91, 0x58, 0x9f})
	f.Add([]byte{0x75, 1, 0x23, 0x80, 1})
	f.Fuzz(func(t *testing.T, code []byte) {
		if e := parse(code); e.Base > located.LoadBase || e.isFramed && e.Base != 0 {
			t.Errorf("%+v", e)
		}
	})
}
