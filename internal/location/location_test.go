package location_test

import (
	"bytes"
	"fmt"
	"testing"

	"wpptrace/internal/location"
)

// TestNext: each operation, with its operand, is what the standard says.
func TestNext(t *testing.T) {
	for name, c := range map[string]struct {
		code []byte
		want string // the operations
	}{
		"addr":          {[]byte{3, 0x10, 0x40, 0, 0, 0, 0, 0, 0}, "3:0:16400"},
		"rdi":           {[]byte{0x55}, "50:5:0"},
		"xmm2":          {[]byte{0x63}, "50:19:0"},
		"regx 33":       {[]byte{0x90, 33}, "50:33:0"},
		"rbp-20":        {[]byte{0x76, 0x6c}, "70:6:-20"},
		"bregx":         {[]byte{0x92, 6, 0x6c}, "70:6:-20"},
		"far":           {[]byte{0x77, 0x80, 0x7f}, "70:7:-128"},
		"frame":         {[]byte{0x91, 0x58}, "91:0:-40"},
		"sum":           {[]byte{0x75, 1, 0x23, 0x80, 1}, "70:5:1 23:0:128"},
		"5":             {[]byte{0x35, 0x9f}, "10:0:5 9f:0:0"},
		"-1 of a byte":  {[]byte{0x09, 0xff}, "11:0:-1"},
		"255 of a byte": {[]byte{0x08, 0xff}, "10:0:255"},
		"1000 of two":   {[]byte{0x0a, 0xe8, 3}, "10:0:1000"},
		"-1 of four":    {[]byte{0x0d, 0xff, 0xff, 0xff, 0xff}, "11:0:-1"},
		"consts":        {[]byte{0x11, 0x7f}, "11:0:-1"},
		"pieces":        {[]byte{0x55, 0x93, 4, 0x93, 4}, "50:5:0 93:0:4 93:0:4"},
		"implicit":      {[]byte{0x9e, 2, 7, 8}, "9e:0:0:0708"},
		"at entry":      {[]byte{0xa3, 1, 0x55, 0x9f}, "a3:0:0:55 9f:0:0"},
		"at entry, gnu": {[]byte{0xf3, 1, 0x55}, "a3:0:0:55"},
		"addrx":         {[]byte{0xfb, 3}, "a1:0:3"},
		"convert":       {[]byte{0xf7, 0x2a}, "a8:0:42"},
		"cut off":       {[]byte{3, 0x10}, "the expression ends within an operation"},
		"no end":        {[]byte{0x76, 0x80}, "the expression ends within an operation"},
		"short block":   {[]byte{0x9e, 2, 7}, "the expression ends within an operation"},
		"thread-local":  {[]byte{0xe0}, "operation 0xe0 is not known"},
	} {
		if got := list(c.code); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

func list(code []byte) (text string) {
	for len(code) > 0 {
		op, rest, err := location.Next(code)
		if err != nil {
			return err.Error()
		}
		if text != "" {
			text += " "
		}
		text += fmt.Sprintf("%x:%d:%d", op.Code, op.Register, op.N)
		if op.Block != nil {
			text += fmt.Sprintf(":%x", op.Block)
		}
		code = rest
	}
	return text
}

// FuzzNext: what is left of an expression is its end, and what is written is read again.
func FuzzNext(f *testing.F) {
	f.Add([]byte{0x91, 0x58, 0x9f}, int64(-40))
	f.Add([]byte{0xa3, 1, 0x55, 0x9f}, int64(1<<62))
	f.Fuzz(func(t *testing.T, code []byte, n int64) {
		for len(code) > 0 {
			op, rest, err := location.Next(code)
			if err != nil {
				break
			}
			if len(rest) >= len(code) || !bytes.HasSuffix(code, rest) ||
				len(op.Block) >= len(code) {
				t.Fatalf("%x: %+v, %x", code, op, rest)
			}
			code = rest
		}
		for _, written := range [][]byte{location.AppendNumber(nil, n),
			location.AppendBase(nil, location.RSP, n), location.AppendAddress(nil, uint64(n))} {
			if op, rest, err := location.Next(written); err != nil || op.N != n || len(rest) > 0 {
				t.Errorf("%x: %+v, %x, %v", written, op, rest, err)
			}
		}
	})
}

func ExampleNext() {
	code := location.AppendBase(nil, location.RBP, -20) // 20 bytes below what rbp has
	op, _, err := location.Next(code)
	fmt.Println(op.Code == location.Breg0, op.Register, op.N, err)
	// Output: true 6 -20 <nil>
}
