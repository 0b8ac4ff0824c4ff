package recovery_test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"wpptrace/loader/cfg"
	"wpptrace/loader/cfg/absint"
)

// asked are the types and conditions of jumps.
var asked = [][2]string{
	{"unsigned", "v & 1"}, {"unsigned", "v >> 5 & 1"}, {"unsigned", "v & 0x80000000u"}, {"unsigned",
		"v > 7"}, {"unsigned", "v <= 0x7fffffff"}, {"unsigned", "v == 42"},
	{"unsigned", "v - 3 > 5"}, {"unsigned", "(v ^ 5) == 3"}, {"unsigned", "(v | 6) == 7"},
	{"unsigned", "(v & 12) >= 8"}, {"unsigned", "(v + 1 & 6) == 4"},
	{"unsigned", "(unsigned short)v == 3"}, {"unsigned", "(unsigned char)v > 100"}, {"unsigned",
		"(signed char)v > 100"}, {"unsigned", "(unsigned)(v << 3) == 64"},
	{"int", "v < 0"}, {"int", "v >= 5"}, {"int", "v > -5"}, {"int", "v <= -2147483647"},
	{"int", "(v >> 2) == -1"}, {"int", "(v >> 1) < -3"}, {"int", "(v & -16) == 32"},
	{"short", "v < -3"}, {"short", "v == 258"}, {"unsigned short", "v > 300"}, {"signed char",
		"v < 7"}, {"unsigned char", "v & 0x40"}, {"char", "v"},
}

var values = []uint32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 15, 31, 32, 33, 41, 42, 43, 47, 63, 64,
	100, 101, 127, 128, 129, 255, 256, 257, 258, 300, 301, 32767, 32768, 65535, 65536,
	65539, 0x7ffffffe, 0x7fffffff, 0x80000000, 0x80000001, 0x80000002, 0xfffffff0, 0xfffffff8,
	0xfffffff9, 0xfffffffa, 0xfffffffb, 0xfffffffc, 0xfffffffd, 0xfffffffe, 0xffffffff}

// TestConditionsHoldAsTheProcessorHasIt: each jump goes one way where its condition holds, and the
// other where it does not.
func TestConditionsHoldAsTheProcessorHasIt(t *testing.T) {
	var source, list, numbers strings.Builder
	for i, a := range asked {
		fmt.Fprintf(&source, "static __attribute__((noinline)) int f%d(%s v) {\nint is = 2; if "+
			"(no) return is;\nif (%s) asm volatile(\"mov $1, %%0\" : \"=a\"(is)); else asm "+
			"volatile(\"mov $0, %%0\" : \"=a\"(is));\nreturn is; }\n", i, a[0], a[1])
		fmt.Fprintf(&list, "putchar('0' + f%d(v[i]));", i)
	}
	for _, v := range values {
		fmt.Fprintf(&numbers, "%du, ", v)
	}
	program := fmt.Sprintf("#include <stdio.h>\nvolatile int no;\n%sint main(void) { unsigned "+
		"v[] = {%s}; for (int i = 0; i < %d; i++) { %s } }", &source, &numbers, len(values), &list)
	for _, flags := range [][]string{{"-O0"}, {"-O0", "-fomit-frame-pointer"}, {"-O1"}, {"-O2"}} {
		path := compile(t, program, flags...)
		out, err := exec.Command(path).Output()
		if err != nil {
			t.Fatal(err)
		}
		p := recoverFile(t, path)
		for i, a := range asked {
			r := routine(t, p, fmt.Sprintf("f%d", i))
			b, c := onlyCondition(t, r)
			if c == nil {
				t.Errorf("%v: %s %s: no condition is found", flags, a[0], a[1])
				continue
			}
			taken := returned(t, p, r, r.Blocks[b].Succ[0])
			if other := returned(t, p, r, r.Blocks[b].Succ[1]); taken+other != 1 {
				t.Fatalf("%v: %s %s: the ways return %d and %d", flags, a[0], a[1], taken, other)
			}
			for k, v := range values {
				if got, want := c.Holds(uint64(v)), out[k*len(asked)+i] == '0'+taken; got != want {
					t.Errorf("%v: %s %s with %#x: got %v, want %v", flags, a[0], a[1], v, got, want)
				}
			}
		}
	}
}

// onlyCondition is the condition of the one jump of a routine that has one, and its block.
func onlyCondition(t *testing.T, r *cfg.Routine) (block int, found *absint.Condition) {
	for b, c := range r.Conditions() {
		if c != nil && found != nil {
			t.Errorf("%s has two conditions", r.Name)
		}
		if c != nil {
			block, found = b, c
		}
	}
	return block, found
}

// returned is the constant that a block of a routine moves to eax.
func returned(t *testing.T, p *cfg.Program, r *cfg.Routine, block int) byte {
	code := p.Image.Bytes(r.Blocks[block].Lo, r.Blocks[block].Hi)
	if len(code) < 5 || code[0] != 0xb8 {
		t.Fatalf("block %x of %s does not begin with mov $constant, %%eax", r.Blocks[block].Lo,
			r.Name)
	}
	return code[1]
}
