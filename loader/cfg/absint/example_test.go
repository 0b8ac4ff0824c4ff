package absint_test

import (
	"fmt"

	"wpptrace/loader/cfg/absint"
	"wpptrace/loader/x86"
)

func effects(code ...byte) x86.Effects {
	in, _ := x86.Decode(code)
	return in.Effects(code, 0)
}

// What rax holds behind two instructions, by what rdi held before them.
func ExampleRegisters() {
	regs := absint.Unchanged()
	regs.Apply([]absint.Effect{
		absint.EffectOf(effects(0x48, 0x8d, 0x47, 0x08)), // lea 8(%rdi),%rax
		absint.EffectOf(effects(0x48, 0x83, 0xe8, 0x03)), // sub $3,%rax
	})
	added, ok := absint.Distance(regs.At(x86.RAX), absint.Held(x86.RDI), 64)
	fmt.Println(added.IsConstant(), added.Add, ok)
	// Output: true 5 true
}

// What a conditional jump asks of one register.
func ExampleConditionOf() {
	before := func(yield func(x86.Effects) bool) {
		_ = yield(effects(0x83, 0xc7, 0x01)) && // add $1,%edi
			yield(effects(0x83, 0xff, 0x0a)) // cmp $10,%edi
	}
	c := absint.ConditionOf(before, x86.Equal)
	fmt.Println(c.Place.Reg == x86.RDI, c.Holds(9), c.Holds(10))
	// Output: true true false
}

// A machine follows what an indirect jump's target is made of.
func ExampleMachine() {
	var m absint.Machine
	m.Reset(absint.EntryCFA)
	for _, e := range []x86.Effects{
		effects(0xbf, 0x00, 0x10, 0x40, 0x00), // mov $0x401000,%edi
		effects(0x48, 0x8d, 0x7f, 0x10),       // lea 0x10(%rdi),%rdi
		effects(0x48, 0x89, 0x7c, 0x24, 0xf8), // mov %rdi,-8(%rsp)
		effects(0x48, 0x8b, 0x44, 0x24, 0xf8), // mov -8(%rsp),%rax
	} {
		m.Step(&e)
	}
	v := m.Regs[x86.RAX]
	fmt.Printf("%v %#x\n", v.Form == absint.Constant, v.Off)
	// Output: true 0x401010
}

// How often a loop goes round, by what its counter is compared with.
func ExampleCounter_RoundsTo() {
	// again: add $8, %rdi; cmp %rsi, %rdi; jne again
	const rsi, rdi = 6, 7
	before := absint.Unchanged()
	c := absint.Counter{Reg: rdi, Width: 64, Step: 8, Exact: true, Limit: before.At(rsi), Lead: 8}
	rounds, ok := c.RoundsTo(0x6040-0x6000, 64) // rsi-rdi, before the loop
	fmt.Println(rounds, ok)
	_, ok = c.RoundsTo(0x6044-0x6000, 64)
	fmt.Println("comes to its limit:", ok)
	// Output:
	// 8 true
	// comes to its limit: false
}
