package truth

import (
	"fmt"
	"strings"
	"testing"
)

func TestOperands(t *testing.T) {
	var r [18]uint64
	for i := range r {
		r[i] = 0x1000 * uint64(i+1)
	}
	r[FSBase] = 0x70000
	for _, test := range []struct{ text, want string }{
		{"mov    rax,QWORD PTR [rdi+rcx*8-0x10]", "r 17ff0+8"}, // 0x8000 + 0x10000 - 0x10
		{"mov    DWORD PTR [rsp],0x1", "w 5000+4"},
		{"add    DWORD PTR [rip+0x2edc],eax        # 4010 <g>", "rw 104010+4"},
		{"mov    rax,QWORD PTR fs:0x28", "r 70028+8"},
		{"lea    rax,[rip+0x2edc]        # 4010 <g>", ""},
		{"nop    WORD PTR cs:[rax+rax*1+0x0]", ""},
		{"data16 cs nop WORD PTR cs:[rax+rax*1+0x0]", ""},
		{"call   QWORD PTR [rip+0x2f]        # 3fd0 <f@GLIBC>", "w 4ff8+8 r 103fd0+8"},
		{"bnd jmp QWORD PTR [rip+0x2f]        # 3fd0 <f@GLIBC>", "r 103fd0+8"},
		{"push   rbx", "w 4ff8+8"},
		{"push   QWORD PTR [rax]", "w 4ff8+8 r 1000+8"},
		{"pop    QWORD PTR [rsp+0x8]", "r 5000+8 w 5010+8"},
		{"ret", "r 5000+8"},
		{"leave", "r 6000+8"},
		{"cmp    BYTE PTR [rdx],0x2f", "r 3000+1"},
		{"test   BYTE PTR [r8+0x4],0x2", "r 9004+1"},
		{"sete   BYTE PTR [rax]", "w 1000+1"},
		{"xchg   DWORD PTR [rdx],eax", "rw 3000+4"},
		{"lock cmpxchg DWORD PTR [rdi],edx", "rw 8000+4"},
		{"cmovne rax,QWORD PTR [rbp-0x8]", "r 5ff8+8"},
		{"movups XMMWORD PTR [rsp+0x10],xmm0", "w 5010+16"},
		{"paddq  xmm0,XMMWORD PTR [rax]", "r 1000+16"},
		{"rep stos QWORD PTR es:[rdi],rax", "w 8000+8"},
		{"movs   BYTE PTR es:[rdi],BYTE PTR ds:[rsi]", "w 8000+1 r 7000+1"},
		{"repz cmps BYTE PTR ds:[rsi],BYTE PTR es:[rdi]", "r 7000+1 r 8000+1"},
		{"repnz scas al,BYTE PTR es:[rdi]", "r 8000+1"},
		{"bt     QWORD PTR [rdi],rax", "r 8200+8"}, // bit 0x1000 is in byte 0x200
		{"bts    DWORD PTR [rdi],0x3", "rw 8000+4"},
		{"movzx  eax,WORD PTR [eax+ecx*2]", "r 5000+2"},
		{"imul   r9,QWORD PTR [rax+0x8]", "r 1008+8"},
		{"imul   QWORD PTR [rax+0x8]", "r 1008+8"},
		{"neg    DWORD PTR [rax]", "rw 1000+4"},
		{"fld    TBYTE PTR [rax]", "r 1000+10"},
		{"fstp   TBYTE PTR [rax]", "w 1000+10"},
		{"movabs eax,0x1122334455667788", ""},
	} {
		list, err := accesses(test.text)
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		var got []string
		for _, o := range list {
			way := ""
			if o.read {
				way = "r"
			}
			if o.write {
				way += "w"
			}
			got = append(got, fmt.Sprintf("%s %x+%d", way, o.address(&r, 0, 0x100000), o.size))
		}
		if got := strings.Join(got, " "); got != test.want {
			t.Errorf("%s: %q, want %q", test.text, got, test.want)
		}
	}
}

// TestFlagsOf: what instructions use of the flags, as the processor's manual has it.
func TestFlagsOf(t *testing.T) {
	for text, want := range map[string]uint32{
		"jle    1190 <main+0x20>": 0x8c0, "bnd jmp QWORD PTR [rip+0x2f]": 0, "ja     10": 0x41,
		"setb   al": 1, "cmovs  eax,edx": 0x80, "jrcxz  10": 0, "lock adc QWORD PTR [rax],rdx": 1,
		"rep stos QWORD PTR es:[rdi],rax": 0x400, "add    eax,edx": 0, "setnp  al": 4, "": 0,
	} {
		if got := flagsOf(mnemonicOf(text)); got != want {
			t.Errorf("%s: %x, want %x", text, got, want)
		}
	}
	if got := fmt.Sprint(vectorsOf("vaddpd ymm1,ymm12,YMMWORD PTR [rax+xmm16]")); got != "[1 12]" {
		t.Errorf("vectors %s", got)
	}
}

func FuzzOperands(f *testing.F) {
	f.Add("  1129:\tmov    rax,QWORD PTR [rdi+rcx*8-0x10]\n")
	f.Add("  1129:\tadd    DWORD PTR [rip+0x2edc],eax        # 4010 <g>\n")
	f.Fuzz(func(_ *testing.T, text string) {
		_, _ = disassemble(strings.NewReader(text))
	})
}
