package x86

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// bytesOf reads hex digits, spaces ignored.
func bytesOf(t testing.TB, digits string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(digits, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestDecode(t *testing.T) {
	for _, test := range []struct {
		code string
		text string
		want Inst
	}{
		{"c5 f8 77", "vzeroupper", Inst{Len: 3, Op: 0x77, Map: 0x11, Rex: 0x40}},
		{"f3 0f 1e fa", "endbr64",
			Inst{Len: 4, Op: 0x1e, Map: 1, ModRM: 0xfa, HasModRM: true, Rep: 0xf3}},
		{"66 48 0f 38 f6 c8", "adcx %rax,%rcx",
			Inst{Len: 6, Op: 0xf6, Map: 2, ModRM: 0xc8, HasModRM: true, Rex: 0x48, OpSize: true}},
		{"66 0f 3a 0f c1 08", "palignr $8,%xmm1,%xmm0",
			Inst{Len: 6, Op: 0x0f, Map: 3, ModRM: 0xc1, HasModRM: true, OpSize: true}},
		{"62 f1 fe 48 6f 47 01", "vmovdqu64 0x40(%rdi),%zmm0",
			Inst{Len: 7, Op: 0x6f, Map: 0x21, ModRM: 0x47, HasModRM: true, Rex: 0x48, Rep: 0xf3}},
		{"c4 e3 7d 39 c1 01", "vextracti128 $1,%ymm0,%xmm1",
			Inst{Len: 6, Op: 0x39, Map: 0x13, ModRM: 0xc1, HasModRM: true, Rex: 0x40,
				OpSize: true}},
		{"c4 42 39 f7 c0", "shlx %r8d,%r8d,%r8d",
			Inst{Len: 5, Op: 0xf7, Map: 0x12, ModRM: 0xc0, HasModRM: true, Rex: 0x45,
				OpSize: true}},
		{"8f e9 78 81 c1", "vfrczpd %xmm1,%xmm0",
			Inst{Len: 5, Op: 0x81, Map: 0x39, ModRM: 0xc1, HasModRM: true, Rex: 0x40}},
		{"8f c0", "pop %rax", Inst{Len: 2, Op: 0x8f, ModRM: 0xc0, HasModRM: true}},
		{"66 81 c1 34 12", "add $0x1234,%cx",
			Inst{Len: 5, Op: 0x81, ModRM: 0xc1, HasModRM: true, OpSize: true}},
		{"66 48 81 c1 78 56 34 12", "data16 add $0x12345678,%rcx",
			Inst{Len: 8, Op: 0x81, ModRM: 0xc1, HasModRM: true, Rex: 0x48, OpSize: true}},
		{"48 b8 01 02 03 04 05 06 07 08", "movabs $0x807060504030201,%rax",
			Inst{Len: 10, Op: 0xb8, Rex: 0x48}},
		{"66 b8 01 02", "mov $0x201,%ax", Inst{Len: 4, Op: 0xb8, OpSize: true}},
		{"a0 01 02 03 04 05 06 07 08", "movabs 0x807060504030201,%al", Inst{Len: 9, Op: 0xa0}},
		{"67 a0 01 02 03 04", "addr32 mov 0x4030201,%al", Inst{Len: 6, Op: 0xa0}},
		{"67 8d 04 25 01 02 03 04", "lea 0x4030201(,%eiz,1),%eax",
			Inst{Len: 8, Op: 0x8d, ModRM: 4, HasModRM: true}},
		{"48 66 90", "rex.W xchg %ax,%ax", Inst{Len: 3, Op: 0x90, OpSize: true}},
		{"48 f3 a4", "rex.W rep movsb", Inst{Len: 3, Op: 0xa4, Rep: 0xf3}},
		{"f6 04 25 01 02 03 04 05", "testb $5,0x4030201",
			Inst{Len: 8, Op: 0xf6, ModRM: 4, HasModRM: true}},
		{"f7 d8", "neg %eax", Inst{Len: 2, Op: 0xf7, ModRM: 0xd8, HasModRM: true}},
		{"c8 10 00 01", "enter $0x10,$1", Inst{Len: 4, Op: 0xc8}},
		{"0f 20 04", "mov %cr0,%rsp, whatever mod says",
			Inst{Len: 3, Op: 0x20, Map: 1, ModRM: 4, HasModRM: true}},
		{"f2 0f 78 c8 01 02", "insertq $2,$1,%xmm0,%xmm1",
			Inst{Len: 6, Op: 0x78, Map: 1, ModRM: 0xc8, HasModRM: true, Rep: 0xf2}},

		{"eb fe", "jmp", Inst{Len: 2, Kind: Jmp, Op: 0xeb, Rel: -2}},
		{"e9 00 01 00 00", "jmp", Inst{Len: 5, Kind: Jmp, Op: 0xe9, Rel: 256}},
		{"f2 e9 00 01 00 00", "bnd jmp", Inst{Len: 6, Kind: Jmp, Op: 0xe9, Rep: 0xf2, Rel: 256}},
		{"e8 ff ff ff ff", "call", Inst{Len: 5, Kind: Call, Op: 0xe8, Rel: -1}},
		{"66 66 48 e8 01 00 00 00", "the call of __tls_get_addr",
			Inst{Len: 8, Kind: Call, Op: 0xe8, Rex: 0x48, OpSize: true, Rel: 1}},
		{"7f 80", "jg", Inst{Len: 2, Kind: Jcc, Op: 0x7f, Rel: -128}},
		{"2e 0f 84 00 00 00 80", "je,pn", Inst{Len: 7, Kind: Jcc, Op: 0x84, Map: 1, Rel: -1 << 31}},
		{"e3 05", "jrcxz", Inst{Len: 2, Kind: Loop, Op: 0xe3, Rel: 5}},
		{"c7 f8 10 00 00 00", "xbegin",
			Inst{Len: 6, Kind: Loop, Op: 0xc7, ModRM: 0xf8, HasModRM: true, Rel: 16}},
		{"3e ff e0", "notrack jmp *%rax",
			Inst{Len: 3, Kind: JmpInd, Op: 0xff, ModRM: 0xe0, HasModRM: true}},
		{"ff 25 10 00 00 00", "jmp *0x10(%rip)",
			Inst{Len: 6, Kind: JmpInd, Op: 0xff, ModRM: 0x25, HasModRM: true}},
		{"41 ff d4", "call *%r12",
			Inst{Len: 3, Kind: CallInd, Op: 0xff, ModRM: 0xd4, HasModRM: true, Rex: 0x41}},
		{"c3", "ret", Inst{Len: 1, Kind: Ret, Op: 0xc3}},
		{"c2 08 00", "ret $8", Inst{Len: 3, Kind: Ret, Op: 0xc2}},
		{"f3 c3", "repz ret", Inst{Len: 2, Kind: Ret, Op: 0xc3, Rep: 0xf3}},
		{"0f 0b", "ud2", Inst{Len: 2, Kind: Trap, Op: 0x0b, Map: 1}},
		{"0f b9 40 01", "ud1 1(%rax),%eax",
			Inst{Len: 4, Kind: Trap, Op: 0xb9, Map: 1, ModRM: 0x40, HasModRM: true}},
		{"f4", "hlt", Inst{Len: 1, Kind: Trap, Op: 0xf4}},
		{"0f 05", "syscall", Inst{Len: 2, Kind: Syscall, Op: 0x05, Map: 1}},
	} {
		got, ok := Decode(bytesOf(t, test.code+"90 90 90 90 90 90 90 90"))
		if diff := cmp.Diff(test.want, got, cmpopts.IgnoreUnexported(Inst{})); !ok || diff != "" {
			t.Errorf("%s: %s: ok %v (-want +got)\n%s", test.text, test.code, ok, diff)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, test := range []struct{ code, why string }{
		{"", "nothing"},
		{"66 66 66", "prefixes alone"},
		{"48", "a rex prefix alone"},
		{"66 66 66 66 66 66 66 66 66 66 66 66 66 66 66 90", "longer than 15 bytes"},
		{"66 66 66 66 66 66 66 66 66 66 66 48 b8 01 02 03 04 05 06 07 08",
			"longer than 15 bytes by its immediate"},
		{"06", "push %es is none in 64-bit mode"},
		{"d5 01 00", "rex2"},
		{"62 f4 7c 08 01 c0", "evex map 4"},
		{"c4 e4 78 58 c1", "vex map 4"},
		{"66 c5 f8 58 c1", "vex behind a 66 prefix"},
		{"48 c5 f8 58 c1", "vex behind a rex prefix"},
		{"66 e8 01 02 03 04", "a call with a 66 prefix: vendors disagree on its length"},
		{"66 0f 84 01 02 03 04", "a jump with a 66 prefix"},
		{"66 c7 f8 01 02", "xbegin with a 66 prefix"},
		{"ff f8", "group 5 has no member 7"},
		{"0f 04", "undefined"},
	} {
		if got, ok := Decode(bytesOf(t, test.code)); ok || got != (Inst{}) {
			t.Errorf("%s: % s: decoded %+v, ok %v", test.why, test.code, got, ok)
		}
	}
}

// TestDecodeTruncated cuts instructions at each byte.
func TestDecodeTruncated(t *testing.T) {
	for _, digits := range []string{
		"f3 0f 1e fa", "c5 f8 58 04 24", "c4 e3 7d 39 44 24 08 01",
		"62 f1 fe 48 6f 84 24 01 02 03 04", "8f e9 78 81 c1",
		"0f 38 f0 04 25 01 02 03 04", "0f 3a 0f c1 08", "e8 01 02 03 04", "0f 84 01 02 03 04",
		"eb 01", "c2 08 00",
		"48 b8 01 02 03 04 05 06 07 08", "f7 84 24 01 02 03 04 05 06 07 08", "c7 f8 01 02 03 04",
		"ff 24 c5 01 02 03 04",
	} {
		code := bytesOf(t, digits)
		if in, ok := Decode(code); !ok || int(in.Len) != len(code) {
			t.Errorf("% x: decoded %d bytes, ok %v", code, in.Len, ok)
		}
		for n := range len(code) {
			if in, ok := Decode(code[:n]); ok {
				t.Errorf("% x: decoded %+v", code[:n], in)
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{"f30f1efa", "c5f877", "62f1fe486f4701", "8fe97881c1",
		"6648b80102030405060708", "0f1f440000", "ff2500000000", "c4e2f8f7c4", "4883ec08",
		"66666666"} {
		f.Add(bytesOf(f, seed))
	}
	f.Fuzz(func(t *testing.T, code []byte) {
		in, ok := Decode(code)
		if !ok {
			if in != (Inst{}) {
				t.Fatalf("% x: not decoded, but %+v", code, in)
			}
			return
		}
		if n := int(in.Len); n < 1 || n > maxLen || n > len(code) {
			t.Fatalf("% x: length %d", code, n)
		}
		if again, ok := Decode(code[:in.Len]); !ok || again != in {
			t.Fatalf("% x: %+v alone, %+v before other bytes", code[:in.Len], again, in)
		}
		if _, ok := Decode(code[:in.Len-1]); ok && in.HasModRM {
			t.Fatalf("% x: decoded without its last byte", code[:in.Len])
		}
		for n := range len(code) + 1 { // whatever code they are handed
			in.Class(code[:n])
			in.Operands(code[:n], 0)
			in.StackDelta(code[:n])
			in.WritesRSP(code[:n])
		}
		checkConsistent(t, in, code)
	})
}

// checkConsistent checks what must hold among the answers for one instruction.
func checkConsistent(t *testing.T, in Inst, code []byte) {
	_, rm, imm := in.Operands(code, 0)
	if imm > int(in.Len) {
		t.Errorf("% x: immediate at %d of %d", code, imm, in.Len)
	}
	if rm.Mem == (rm.Reg >= 0) && in.HasModRM {
		t.Errorf("% x: operand %+v", code, rm)
	}
	if delta, ok := in.StackDelta(code); !ok && delta != 0 {
		t.Errorf("% x: no constant, but %d", code, delta)
	}
	if class := in.Class(code); class != Never && (in.Map > 1 || in.prefix != 0) {
		t.Errorf("% x: class %d", code, class)
	}
}

func ExampleDecode() {
	code := []byte{0x48, 0x83, 0xec, 0x08, 0xe8, 0x10, 0x00, 0x00, 0x00, 0xc3}
	for addr := uint64(0x1000); len(code) > 0; {
		in, ok := Decode(code)
		if !ok {
			break
		}
		delta, _ := in.StackDelta(code)
		fmt.Printf("%x: %d bytes, call %v, emulated %v, rsp%+d\n", addr, in.Len, in.Kind == Call,
			in.Class(code) == Emulated, delta)
		code = code[in.Len:]
		addr += uint64(in.Len)
	}
	// Output:
	// 1000: 4 bytes, call false, emulated false, rsp-8
	// 1004: 5 bytes, call true, emulated true, rsp+0
	// 1009: 1 bytes, call false, emulated false, rsp+8
}

// A program has millions of instructions.
func TestInstIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(Inst{}); size != 16 {
		t.Errorf("it has %d bytes", size)
	}
}

// Whatever decodes to something relative that is long is found, or what is behind its prefixes and
// leads to the same place.
func TestNextRelative(t *testing.T) {
	r, found := rand.New(rand.NewPCG(1, 2)), 0
	starts := bytesOf(t, "0f c7 e8 eb 70 e3 66 f2 2e 48 c4 62")
	for range 1_000_000 {
		code := binary.LittleEndian.AppendUint64(nil, r.Uint64())
		for i := range r.IntN(5) {
			code[i] = starts[r.IntN(len(starts))]
		}
		if code[0] == 0xc7 && r.IntN(8) == 0 {
			code[1] = 0xf8
		}
		in, ok := Decode(code)
		if !ok || !in.Kind.IsRelative() || in.Len < longRelative {
			continue
		}
		found++
		at := NextRelative(code)
		same, ok := Decode(code[at:])
		if !ok || !same.Kind.IsRelative() || same.Len < longRelative || same.Rel != in.Rel ||
			at+int(same.Len) != int(in.Len) {
			t.Fatalf("%x, %d bytes: at %d", code, in.Len, at)
		}
	}
	if found < 10_000 {
		t.Errorf("%d relative ones", found)
	}
	for _, none := range []string{"", "0f", "90", "00 b8", "48 89 c8", "66", "0f 10 c8",
		"2e 74 00"} {
		if code := bytesOf(t, none); NextRelative(code) != len(code) {
			t.Errorf("%s: at %d", none, NextRelative(code))
		}
	}
}

func TestIsPadding(t *testing.T) {
	for digits, want := range map[string]bool{"": true, "90 00 cc": true, "90 c3": false,
		"66 90 0f 1f 44 00 00": true, "c3": false, "06": false, "00 00 00": true, "90 0f": false} {
		code := bytesOf(t, digits)
		if IsPadding(code) != want || SizeWithoutPadding(code) == 0 != want {
			t.Errorf("%s: %v and %d bytes, want %v", digits, IsPadding(code),
				SizeWithoutPadding(code), want)
		}
	}
}
