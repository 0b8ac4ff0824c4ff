package x86

import (
	"fmt"
	"math/bits"
	"strings"
	"testing"

	"golang.org/x/arch/x86/x86asm"
)

func effectsOf(t testing.TB, code string) Effects {
	t.Helper()
	b := bytesOf(t, code)
	in, ok := Decode(b)
	if !ok || int(in.Len) != len(b) {
		t.Fatalf("% x: not decoded as one instruction", b)
	}
	return in.Effects(b, 0x2000)
}

// describe prints effects as the tables here have them: operation, operands, registers and flags.
func describe(e Effects) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s %s", describeOperand(e.Dst), describeOperand(e.Src))
	if e.Third >= 0 {
		fmt.Fprintf(&s, " r%d", e.Third)
	}
	if e.HasImm {
		fmt.Fprintf(&s, " $%d", e.Imm)
	}
	fmt.Fprintf(&s, "; read %s written %s surely %s; flags %02x %02x", describeSet(e.Read()),
		describeSet(e.Written()), describeSet(e.SurelyWritten()), e.FlagsRead(), e.FlagsWritten())
	return s.String()
}

func describeOperand(o Operand) string {
	switch {
	case o.Mem && o.RIP:
		return fmt.Sprintf("[%#x]/%d", o.Disp, o.Size)
	case o.Mem:
		return fmt.Sprintf("[%d+%d*%d%+d]/%d", o.Base, o.Index, o.Scale, o.Disp, o.Size)
	case o.Reg >= 0:
		return fmt.Sprintf("r%d/%d", o.Reg, o.Size)
	}
	return "-"
}

func describeSet(s Set) string {
	list := []string{}
	for ; s != 0; s &= s - 1 {
		list = append(list, fmt.Sprint(bits.TrailingZeros16(uint16(s))))
	}
	return "{" + strings.Join(list, " ") + "}"
}

func TestEffects(t *testing.T) {
	for _, test := range []struct {
		code, text string
		op         Operation
		want       string
	}{
		{"90", "nop", NoOp, "- -; read {} written {} surely {}; flags 00 00"},
		{"89 c8", "mov %ecx,%eax", Mov, "r0/4 r1/4; read {1} written {0} surely {0}; flags 00 00"},
		{"88 e0", "mov %ah,%al", Mov, "r0/1 r16/1; read {0} written {0} surely {}; flags 00 00"},
		{"40 88 e0", "mov %spl,%al", Mov, "r0/1 r4/1; read {0 4} written {0} surely {}; flags 00 " +
			"00"},
		{"4c 8b 6c 9f 08", "mov 8(%rdi,%rbx,4),%r13", Mov,
			"r13/8 [7+3*4+8]/8; read {3 7} written {13} surely {13}; flags 00 00"},
		{"48 c7 45 f8 fe ff ff ff", "movq $-2,-8(%rbp)", Mov,
			"[5+-1*1-8]/8 - $-2; read {5} written {} surely {}; flags 00 00"},
		{"41 b8 ff ff ff ff", "mov $-1,%r8d", Mov, "r8/4 - $-1; read {} written {8} surely {8}; " +
			"flags 00 00"},
		{"a1 01 00 00 00 00 00 00 00", "movabs 1,%eax", Mov,
			"r0/4 [-1+-1*1+1]/4; read {} written {0} surely {0}; flags 00 00"},
		{"66 0f ae 78 9f", "clflushopt -0x61(%rax)", NoOp,
			"- [0+-1*1-97]/2; read {0} written {} surely {}; flags 00 00"},
		{"48 8d 44 8f 01", "lea 1(%rdi,%rcx,4),%rax", Lea,
			"r0/8 [7+1*4+1]/8; read {1 7} written {0} surely {0}; flags 00 00"},
		{"0f b6 c4", "movzbl %ah,%eax", MovZX, "r0/4 r16/1; read {0} written {0} surely {0}; " +
			"flags 00 00"},
		{"48 63 d0", "movslq %eax,%rdx", MovSX, "r2/8 r0/4; read {0} written {2} surely {2}; " +
			"flags 00 00"},
		{"48 98", "cdqe", MovSX, "r0/8 r0/4; read {0} written {0} surely {0}; flags 00 00"},
		{"99", "cdq", SignFill, "r2/4 r0/4; read {0} written {2} surely {2}; flags 00 00"},
		{"83 c4 f8", "add $-8,%esp", Add, "r4/4 - $-8; read {4} written {4} surely {4}; flags 00 " +
			"3f"},
		{"31 c0", "xor %eax,%eax", Xor, "r0/4 r0/4; read {} written {0} surely {0}; flags 00 3f"},
		{"48 11 f8", "adc %rdi,%rax", Adc, "r0/8 r7/8; read {0 7} written {0} surely {0}; flags " +
			"01 3f"},
		{"3c 05", "cmp $5,%al", Cmp, "r0/1 - $5; read {0} written {} surely {}; flags 00 3f"},
		{"ff c0", "inc %eax", Inc, "r0/4 -; read {0} written {0} surely {0}; flags 00 3e"},
		{"d3 e0", "shl %cl,%eax", Shl, "r0/4 r1/1; read {0 1} written {0} surely {0}; flags 00 3f"},
		{"48 0f ac d0 20", "shrd $32,%rdx,%rax", Shrd,
			"r0/8 r2/8 $32; read {0 2} written {0} surely {0}; flags 00 3f"},
		{"48 6b c7 18", "imul $24,%rdi,%rax", IMul, "r0/8 r7/8 $24; read {7} written {0} surely " +
			"{0}; flags 00 3f"},
		{"48 0f af c7", "imul %rdi,%rax", IMul, "r0/8 r7/8 r0; read {0 7} written {0} surely " +
			"{0}; flags 00 3f"},
		{"48 f7 e7", "mul %rdi", MulWide, "- r7/8; read {0 7} written {0 2} surely {0 2}; flags " +
			"00 3f"},
		{"f6 f1", "div %cl", Div, "- r1/1; read {0 1} written {0} surely {}; flags 00 3f"},
		{"f7 39", "idivl (%rcx)", IDiv, "- [1+-1*1+0]/4; read {0 1 2} written {0 2} surely {0 " +
			"2}; flags 00 3f"},
		{"48 0f 44 c2", "cmove %rdx,%rax", MovIf, "r0/8 r2/8; read {0 2} written {0} surely {}; " +
			"flags 08 00"},
		{"0f 97 c0", "seta %al", SetIf, "r0/1 -; read {0} written {0} surely {}; flags 09 00"},
		{"41 54", "push %r12", Push, "- r12/8; read {4 12} written {} surely {}; flags 00 00"},
		{"6a ff", "push $-1", Push, "- - $-1; read {4} written {} surely {}; flags 00 00"},
		{"5d", "pop %rbp", Pop, "r5/8 -; read {4} written {5} surely {5}; flags 00 00"},
		{"c9", "leave", Leave, "- -; read {5} written {5} surely {}; flags 00 00"},
		{"f3 48 ab", "rep stos %rax,(%rdi)", Stos, "- -; read {0 1 7} written {1 7} surely {}; " +
			"flags 40 00"},
		{"f0 0f b1 0f", "lock cmpxchg %ecx,(%rdi)", CmpXchg,
			"[7+-1*1+0]/4 r1/4; read {0 1 7} written {0} surely {}; flags 00 3f"},
		{"48 0f c7 0e", "cmpxchg16b (%rsi)", CmpXchgPair,
			"[6+-1*1+0]/16 -; read {0 1 2 3 6} written {0 2} surely {}; flags 00 08"},
		{"48 87 0a", "xchg %rcx,(%rdx)", Xchg, "[2+-1*1+0]/8 r1/8; read {1 2} written {1} surely " +
			"{1}; flags 00 00"},
		{"0f c8", "bswap %eax", BSwap, "r0/4 -; read {0} written {0} surely {0}; flags 00 00"},
		{"f3 0f b8 c7", "popcnt %edi,%eax", PopCnt, "r0/4 r7/4; read {7} written {0} surely {0}; " +
			"flags 00 3f"},
		{"0f bd c7", "bsr %edi,%eax", Bsr, "r0/4 r7/4; read {0 7} written {0} surely {}; flags " +
			"00 3f"},
		{"c4 e2 e0 f2 c1", "andn %rcx,%rbx,%rax", AndN,
			"r0/8 r1/8 r3; read {1 3} written {0} surely {0}; flags 00 3f"},
		{"c4 e2 e3 f6 c1", "mulx %rcx,%rbx,%rax", MulX,
			"r0/8 r1/8 r3; read {1 2} written {0 3} surely {0 3}; flags 00 00"},
		{"c4 62 e3 f7 04 d7", "shrx %rbx,(%rdi,%rdx,8),%r8", Shrx,
			"r8/8 [7+2*8+0]/8 r3; read {2 3 7} written {8} surely {8}; flags 00 00"},
		{"c4 e2 f8 f3 c9", "blsr %rcx,%rax", Blsr, "r0/8 r1/8; read {1} written {0} surely {0}; " +
			"flags 00 3f"},
		{"66 48 0f 6e c7", "movq %rdi,%xmm0", Vector,
			"- r7/8; read {7} written {} surely {}; flags 00 00"},
		{"66 48 0f 7e c7", "movq %xmm0,%rdi", Vector,
			"r7/8 -; read {} written {7} surely {7}; flags 00 00"},
		{"f2 48 0f 2c c4", "cvttsd2si %xmm4,%rax", Vector,
			"r0/8 -; read {} written {0} surely {0}; flags 00 00"},
		{"0f 11 27", "movups %xmm4,(%rdi)", Vector, "[7+-1*1+0]/0 -; read {7} written {} surely " +
			"{}; flags 00 00"},
		{"0f 10 27", "movups (%rdi),%xmm4", Vector, "- [7+-1*1+0]/0; read {7} written {} surely " +
			"{}; flags 00 00"},
		{"66 0f 2e c1", "ucomisd %xmm1,%xmm0", Vector,
			"- -; read {} written {} surely {}; flags 00 3f"},
		{"66 0f 3a 63 c1 0c", "pcmpistri $12,%xmm1,%xmm0", Vector,
			"- -; read {} written {1} surely {}; flags 00 3f"},
		{"dd 1f", "fstpl (%rdi)", X87, "[7+-1*1+0]/0 -; read {7} written {} surely {}; flags 00 " +
			"00"},
		{"dd 07", "fldl (%rdi)", X87, "- [7+-1*1+0]/0; read {7} written {} surely {}; flags 00 00"},
		{"df e0", "fnstsw %ax", X87, "- -; read {} written {0} surely {}; flags 00 3f"},
		{"75 00", "jne", JumpIf, "- -; read {} written {} surely {}; flags 08 00"},
		{"e2 00", "loop", LoopRCX, "- -; read {1} written {1} surely {}; flags 00 00"},
		{"ff 24 c5 00 10 40 00", "jmp *0x401000(,%rax,8)", Jump,
			"- [-1+0*8+4198400]/8; read {0} written {} surely {}; flags 00 00"},
		{"0f 05", "syscall", SystemCall, "- -; read {0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15} " +
			"written {0 1 11} surely {}; flags 00 00"},
		{"0f a2", "cpuid", CpuID, "- -; read {0 1} written {0 1 2 3} surely {0 1 2 3}; flags 00 " +
			"00"},
	} {
		e := effectsOf(t, test.code)
		if got := describe(e); got != test.want || e.Operation != test.op {
			t.Errorf("%s: operation %d (want %d)\n got %s\nwant %s", test.text, e.Operation,
				test.op, got, test.want)
		}
	}
}

// TestOperandSizeBehindMandatory66: a 66 prefix that is a part of the opcode is none for the
// operand size. The sizes are the manuals'.
func TestOperandSizeBehindMandatory66(t *testing.T) {
	for _, test := range []struct{ code, text, want string }{
		{"66 0f 38 f6 ca", "adcx %edx,%ecx", "r1/4 r2/4"},
		{"66 48 0f 38 f6 ca", "adcx %rdx,%rcx", "r1/8 r2/8"},
		{"66 0f 38 f6 0f", "adcx (%rdi),%ecx", "r1/4 [7+-1*1+0]/4"},
		{"f3 0f 38 f6 ca", "adox %edx,%ecx", "r1/4 r2/4"},
		{"66 f3 0f 38 f6 ca", "data16 adox %edx,%ecx", "r1/4 r2/4"},
		{"66 0f 6e c7", "movd %edi,%xmm0", "- r7/4"},
		{"66 0f 7e c7", "movd %xmm0,%edi", "r7/4 -"},
		{"66 0f 7e 07", "movd %xmm0,(%rdi)", "[7+-1*1+0]/4 -"},
		{"66 0f 50 c7", "movmskpd %xmm7,%eax", "r0/4 -"},
		{"66 0f d7 c7", "pmovmskb %xmm7,%eax", "r0/4 -"},
		{"66 0f c5 c7 01", "pextrw $1,%xmm7,%eax", "r0/4 -"},
		{"c4 e2 71 f7 c2", "shlx %ecx,%edx,%eax", "r0/4 r2/4"},
		{"66 0f 38 f0 07", "movbe (%rdi),%ax", "r0/2 [7+-1*1+0]/2"},
		{"66 f3 0f b8 c2", "popcnt %dx,%ax", "r0/2 r2/2"},
		{"66 0f c1 d0", "xadd %dx,%ax", "r0/2 r2/2"},
		{"66 0f a3 d0", "bt %dx,%ax", "r0/2 r2/2"},
		{"66 0f 1f 07", "nopw (%rdi)", "- -"},
	} {
		e := effectsOf(t, test.code)
		if got := describeOperand(e.Dst) + " " + describeOperand(e.Src); got != test.want {
			t.Errorf("%s: %s, want %s", test.text, got, test.want)
		}
	}
}

func TestAccesses(t *testing.T) {
	for _, test := range []struct{ code, text, want string }{
		{"48 8b 07", "mov (%rdi),%rax", "[7+-1*1+0]/8 read"},
		{"48 01 07", "add %rax,(%rdi)", "[7+-1*1+0]/8 read written"},
		{"48 8d 07", "lea (%rdi),%rax", ""},
		{"0f 1f 07", "nopl (%rdi)", ""},
		{"0f ae 3f", "clflush (%rdi)", ""},
		{"55", "push %rbp", "[4+-1*1-8]/8 written"},
		{"ff 37", "push (%rdi)", "[7+-1*1+0]/8 read, [4+-1*1-8]/8 written"},
		{"8f 07", "pop (%rdi)", "[7+-1*1+0]/8 written, [4+-1*1+0]/8 read"},
		{"e8 00 00 00 00", "call", "[4+-1*1-8]/8 written"},
		{"c3", "ret", "[4+-1*1+0]/8 read"},
		{"a4", "movsb", "[6+-1*1+0]/1 read, [7+-1*1+0]/1 written"},
		{"f3 48 ab", "rep stosq", "[7+-1*1+0]/8 written"},
		{"c9", "leave", "[5+-1*1+0]/8 read"},
		{"0f ae 27", "xsave (%rdi)", "[7+-1*1+0]/0 read written"},
	} {
		e := effectsOf(t, test.code)
		list := []string{}
		for _, a := range e.Accesses(nil) {
			s := describeOperand(a.At)
			if a.Reads {
				s += " read"
			}
			if a.Writes {
				s += " written"
			}
			list = append(list, s)
		}
		if got := strings.Join(list, ", "); got != test.want {
			t.Errorf("%s: %s, want %s", test.text, got, test.want)
		}
	}
}

// TestEffectsOfEveryOpcode checks what holds of any instruction, and that Written has each register
// of which Writes, which objdump has been asked about, says that it is written.
func TestEffectsOfEveryOpcode(t *testing.T) {
	for _, code := range everyOpcode() {
		if in, ok := Decode(code); ok {
			checkEffects(t, in, code)
		}
	}
}

func checkEffects(t *testing.T, in Inst, code []byte) {
	e := in.Effects(code, 0x2000)
	code = code[:in.Len]
	written := e.Written()
	for reg := range int8(16) {
		if in.Writes(code, uint8(reg)) && !written.Has(reg) &&
			!(e.Operation == Unknown && reg == RSP) && e.Operation != NoOp {
			t.Errorf("% x (operation %d): register %d is not among the written %s", code,
				e.Operation, reg, describeSet(written))
		}
	}
	if surely := e.SurelyWritten(); surely&^written != 0 {
		t.Errorf("% x: surely written %s, written %s", code, describeSet(surely),
			describeSet(written))
	}
	if in.KeepsFlags() != (e.FlagsWritten()&^DF == 0) {
		t.Errorf("% x: KeepsFlags does not agree with FlagsWritten", code)
	}
	if _, n, ok := e.Stores(); ok && n == 0 {
		t.Errorf("% x: a store of no bytes", code)
	}
	if e.Complete() && e.Operation == Unknown {
		t.Errorf("% x: complete but unknown", code)
	}
}

func FuzzEffects(f *testing.F) {
	for _, seed := range []string{"48 8b 07", "c4 e2 e3 f6 c1", "62 f1 7c 48 28 c0", "f3 48 ab",
		"a1 01 00 00 00 00 00 00 00", "0f c7 f8"} {
		f.Add(bytesOf(f, seed))
	}
	f.Fuzz(func(t *testing.T, code []byte) {
		in, ok := Decode(code)
		if !ok {
			return
		}
		for n := range int(in.Len) {
			if e := in.Effects(code[:n], 0); e.Operation != Unknown || e.Complete() ||
				e.Dst != none || e.Src != none {
				t.Errorf("% x: truncated to %d bytes it has effects", code, n)
			}
		}
		checkEffects(t, in, code)
	})
}

// mnemonics are the operations that x86asm has the same operands for.
var mnemonics = map[x86asm.Op]Operation{
	x86asm.MOV: Mov, x86asm.MOVZX: MovZX, x86asm.MOVSX: MovSX, x86asm.MOVSXD: MovSX,
	x86asm.LEA: Lea, x86asm.ADD: Add, x86asm.OR: Or, x86asm.ADC: Adc, x86asm.SBB: Sbb,
	x86asm.AND: And, x86asm.SUB: Sub, x86asm.XOR: Xor, x86asm.CMP: Cmp, x86asm.TEST: Test,
	x86asm.INC: Inc, x86asm.DEC: Dec, x86asm.NEG: Neg, x86asm.NOT: Not,
	x86asm.ROL: Rol, x86asm.ROR: Ror, x86asm.SHL: Shl, x86asm.SHR: Shr, x86asm.SAR: Sar,
	x86asm.POP: Pop, x86asm.BSWAP: BSwap, x86asm.BSF: Bsf, x86asm.BSR: Bsr,
	x86asm.BT: Bt, x86asm.BTS: Bts, x86asm.BTR: Btr, x86asm.BTC: Btc, x86asm.CMPXCHG: CmpXchg,
	x86asm.XADD: XAdd, x86asm.IMUL: IMul, x86asm.SHLD: Shld, x86asm.SHRD: Shrd,
	x86asm.CMOVE: MovIf, x86asm.CMOVNE: MovIf, x86asm.CMOVA: MovIf, x86asm.CMOVB: MovIf,
	x86asm.SETE: SetIf, x86asm.SETNE: SetIf, x86asm.SETG: SetIf, x86asm.POPCNT: PopCnt,
}

// TestOperandsEqualX86asm compares operations and operands of whole programs with what x86asm makes
// of the same bytes, where it knows them.
func TestOperandsEqualX86asm(t *testing.T) {
	checked := 0
	for _, section := range executableSections(t, binaries(t)[0]) {
		for at := 0; at < len(section.data); {
			code := section.data[at:]
			in, ok := Decode(code)
			if !ok {
				at++
				continue
			}
			at += int(in.Len)
			other, err := x86asm.Decode(code[:in.Len], 64)
			op, known := mnemonics[other.Op]
			if err != nil || other.Len != int(in.Len) || !known || in.Elsewhere() {
				continue
			}
			e := in.Effects(code, uint64(in.Len))
			if e.Operation == IMulWide || op == Mov && strings.HasSuffix(other.Args[1].String(),
				"S") {
				// one name for both; segment registers
				continue
			}
			checked++
			if got, want := operandsOf(&e), argumentsOf(&other); e.Operation != op || got != want {
				t.Fatalf("% x %v: operation %d (want %d), operands %s, want %s", code[:in.Len],
					other, e.Operation, op, got, want)
			}
		}
	}
	if checked < 10000 {
		t.Errorf("only %d instructions were compared", checked)
	}
}

func operandsOf(e *Effects) string {
	list := []string{}
	for _, o := range []Operand{e.Dst, e.Src} {
		if o.Mem {
			base, disp := o.Base, o.Disp
			if o.RIP {
				base = 99
			}
			list = append(list, fmt.Sprintf("[%d+%d*%d%+d]", base, o.Index, max(o.Scale, 1), disp))
		} else if o.Reg >= 0 {
			list = append(list, fmt.Sprintf("r%d/%d", o.Reg, o.Size))
		}
	}
	if e.Third == RCX && (e.Operation == Shld || e.Operation == Shrd) {
		list = append(list, "r1/1")
	}
	if e.HasImm && len(list) > 0 {
		list = append(list, fmt.Sprintf("$%d", uint8(e.Imm)))
	}
	return strings.Join(list, " ")
}

func argumentsOf(in *x86asm.Inst) string {
	list := []string{}
	for _, a := range in.Args {
		switch a := a.(type) {
		case x86asm.Reg:
			number, size := registerOf(a)
			list = append(list, fmt.Sprintf("r%d/%d", number, size))
		case x86asm.Mem:
			base, index, scale := int8(-1), int8(-1), uint8(1)
			disp := int64(int32(a.Disp))
			if a.Base == x86asm.RIP {
				base, disp = 99, disp+int64(in.Len)
			} else if a.Base != 0 {
				base, _ = registerOf(a.Base)
			}
			if a.Scale != 0 && a.Index != 0 {
				index, _ = registerOf(a.Index)
				scale = a.Scale
			}
			list = append(list, fmt.Sprintf("[%d+%d*%d%+d]", base, index, scale, disp))
		case x86asm.Imm:
			list = append(list, fmt.Sprintf("$%d", uint8(a)))
		}
	}
	return strings.Join(list, " ")
}

func registerOf(r x86asm.Reg) (number int8, size uint8) {
	switch {
	case r >= x86asm.AL && r <= x86asm.BL:
		return int8(r - x86asm.AL), 1
	case r >= x86asm.AH && r <= x86asm.BH:
		return AH + int8(r-x86asm.AH), 1
	case r >= x86asm.SPB && r <= x86asm.R15B:
		return 4 + int8(r-x86asm.SPB), 1
	case r >= x86asm.AX && r <= x86asm.R15W:
		return int8(r - x86asm.AX), 2
	case r >= x86asm.EAX && r <= x86asm.R15L:
		return int8(r - x86asm.EAX), 4
	case r >= x86asm.RAX && r <= x86asm.R15:
		return int8(r - x86asm.RAX), 8
	}
	return -1, 0
}

func BenchmarkEffects(b *testing.B) {
	code := bytesOf(b, "4c 8b 6c 9f 08")
	in, _ := Decode(code)
	for b.Loop() {
		e := in.Effects(code, 0)
		if e.Operation != Mov {
			b.Fatal(e.Operation)
		}
	}
}

func ExampleInst_Effects() {
	code := []byte{0x48, 0x03, 0x44, 0x8f, 0x08} // add 8(%rdi,%rcx,4),%rax
	in, _ := Decode(code)
	e := in.Effects(code, 0x401005)
	fmt.Println(e.Operation == Add, e.Dst.Reg == RAX, e.Src.Base == RDI, e.Src.Index == RCX,
		e.Src.Scale, e.Src.Disp, e.Src.Size)
	fmt.Println(e.Read() == SetOf(RAX, RCX, RDI), e.Written() == SetOf(RAX),
		e.FlagsWritten()&CF != 0)
	// Output:
	// true true true true 4 8 8
	// true true true
}

// Of two prefixes that each make another instruction of one opcode, f3 wins.
func TestRepWinsOverOperandSize(t *testing.T) {
	code := []byte{0x66, 0xf3, 0x0f, 0x38, 0xf6, 0xca} // adox %edx,%ecx
	in, ok := Decode(code)
	e := in.Effects(code, 0)
	if !ok || e.Operation != AdoX || e.FlagsWritten() != OF {
		t.Errorf("%x: operation %d, writes flags %x", code, e.Operation, e.FlagsWritten())
	}
}
