package machine

import (
	"bytes"
	"testing"
)

func FuzzInsn(f *testing.F) {
	for i := range mix {
		f.Add(AppendInsn(nil, &mix[i]))
	}
	opaque := OpaqueInsn(3, X87, Set{General: 5, Flags: CF, Vectors: 1 << 15, Memory: true},
		memory(RSP, 10, 8))
	f.Add(AppendInsn(nil, &opaque))
	f.Fuzz(func(t *testing.T, b []byte) {
		in, rest, err := ParseInsn(b)
		if err != nil {
			return
		}
		again, none, err := ParseInsn(AppendInsn(nil, &in))
		if err != nil || again != in || len(none) != 0 {
			t.Fatalf("%+v is read back as %+v, %v", in, again, err)
		}
		if len(rest) >= len(b) {
			t.Fatal("nothing was read")
		}
		m := New()
		for n := range 16 {
			m.SetGeneral(n, uint64(n)*0x123456789, Confirmed)
		}
		m.SetGeneral(RCX, 3, Confirmed)
		m.SetFlags(CF, Confirmed)
		m.Step(&in, 0x1000, &page{})
		New().Step(&in, 0x1000, &page{})
	})
}

func TestParseInsn(t *testing.T) {
	want := OpaqueInsn(3, X87, Set{General: 5, Flags: CF, Vectors: 1 << 15, Memory: true},
		memory(RSP, 10, 8))
	b := AppendInsn([]byte("ab"), &want)
	for n := 2; n < len(b); n++ {
		if _, _, err := ParseInsn(b[2:n]); err != errCut {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	got, rest, err := ParseInsn(append(b[2:], 'c'))
	if err != nil || got != want || !bytes.Equal(rest, []byte("c")) {
		t.Errorf("%+v, %s, %v", got, rest, err)
	}
	for name, bad := range map[string]Insn{
		"no bytes":       {Op: Mov, Size: 8},
		"later version":  {Op: ops, Len: 1, Size: 8},
		"size":           {Op: Mov, Len: 1, Size: 3},
		"register":       {Op: Mov, Len: 1, Size: 8, Dst: general(16, 8)},
		"index":          {Op: Mov, Len: 1, Size: 8, Dst: Operand{Class: Mem, Size: 8, Index: 20}},
		"condition":      {Op: MovIf, Len: 1, Size: 8, Condition: 16},
		"class":          {Op: Mov, Len: 1, Size: 8, Dst: Operand{Class: classes, Size: 8}},
		"size of memory": {Op: Mov, Len: 1, Size: 8, Src: memory(RAX, 64, 0)},
	} {
		if _, _, err := ParseInsn(AppendInsn(nil, &bad)); err == nil {
			t.Errorf("%s: it is taken", name)
		}
	}
}
