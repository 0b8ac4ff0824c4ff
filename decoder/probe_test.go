//go:build linux && cgo

package decoder_test

import (
	"cmp"
	"slices"

	"wpptrace/bpf"
	"wpptrace/bpf/usermode"
	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
	"wpptrace/loader/x86"
)

// kernelSite turns a site of the plan into the kernel's, as loader/attach does.
func kernelSite(p *plan.Plan, s *plan.Site) bpf.TracerSite {
	k := bpf.TracerSite{Offset: s.Offset, Routine: uint32(s.Routine), Base: s.Base,
		Condition: s.Condition, CaptureReg: usermode.NoReg, CaptureIndex: usermode.NoReg}
	flag := func(on bool, f uint8) {
		if on {
			k.Flags |= f
		}
	}
	flag(s.First, usermode.SiteFirst)
	for outcome, stays := range s.SameActivation {
		if stays {
			k.Stays |= 1 << outcome
		}
	}
	for outcome, ra := range s.NextCall {
		if ra > 0 {
			k.Next[outcome] = bpf.NextCall(ra, p.Calls[ra].Depth)
		}
	}
	if s.Caller > 0 {
		k.Caller = bpf.OnlyCaller(s.Caller, p.Calls[s.Caller].AfterEvent)
	}
	flag(s.Slot, usermode.SiteSlot)
	if s.Capture == nil {
		return k
	}
	e := s.Capture.Encode()
	flag(e.Always, usermode.SiteValue)
	flag(!e.Always, usermode.SiteCapture)
	flag(e.Taken, usermode.SiteCaptureTaken)
	flag(e.Target, usermode.SiteCaptureTarget)
	flag(e.Memory, usermode.SiteCaptureMemory)
	flag(e.RIP, usermode.SiteCaptureRIP)
	k.CaptureSize, k.CaptureScale, k.CaptureDisp = e.Size, e.Scale, e.Disp
	if e.Reg != plan.NoRegister {
		k.CaptureReg = uint8(e.Reg)
	}
	if e.Index != plan.NoRegister {
		k.CaptureIndex = uint8(e.Index)
	}
	return k
}

// hit runs the C of a hit with registers that say what the simulated process has decided.
func (s *process) hit(f *frame, site *plan.Site) {
	var regs usermode.Registers
	for i := range regs.General {
		regs.General[i] = 0x100000000 + uint64(i)*0x10000
	}
	regs.General[4] = f.cfa - 0x800
	if site.Slot {
		regs.General[site.Base] = f.cfa - 0x400
		s.machine.Memory.Set(regs.General[site.Base]+uint64(int64(site.Offset)), f.cfa)
	} else {
		regs.General[site.Base] = f.cfa - uint64(int64(site.Offset))
	}
	block := &f.r.Blocks[f.block]
	taken := s.dice(2) == 1
	if block.End == cfg.Jcc && site.Condition < usermode.ConditionNone {
		taken = f.out == 0
	}
	regs.Flags = s.flags(site.Condition, taken)
	switch c := site.Capture; {
	case c == nil:
	case c.Kind == plan.LoopRegisters:
		s.show(f, c.Registers.Reg, site, &regs)
		if c.Registers.Minus != plan.NoRegister {
			s.show(f, c.Registers.Minus, site, &regs)
		}
	case c.Kind == plan.JumpPlace && !c.Operand.Mem:
		s.show(f, c.Operand.Reg, site, &regs)
	case c.Kind == plan.JumpPlace:
		s.store(c.Operand, &regs, s.valueOf(f, c.Operand))
	default:
		s.putIndex(f, site, c, &regs, taken && site.Condition < usermode.ConditionNone)
	}
	s.hits++
	f.reported, f.landed = true, false
	cookie, _ := slices.BinarySearchFunc(s.plan.Sites, site.Addr,
		func(o plan.Site, addr uint64) int { return cmp.Compare(o.Addr, addr) })
	s.machine.Hit(s.thread, uint32(cookie), &regs)
}

// show puts what a register holds where the probe reads it. Where the frame's address is taken from
// it that is what it holds.
func (s *process) show(f *frame, reg int8, site *plan.Site, regs *usermode.Registers) {
	if uint8(reg) == site.Base {
		f.cpu.regs[reg] = regs.General[reg]
	}
	regs.General[reg] = f.cpu.regs[reg]
}

// flags are random ones under which the condition holds, or not.
func (s *process) flags(condition uint8, taken bool) uint64 {
	for {
		v := s.random.Uint64()
		if condition >= usermode.ConditionNone || holds(condition, v) == taken {
			return v
		}
	}
}

// holds is the condition of a conditional jump as the manual has it.
func holds(condition uint8, flags uint64) bool {
	bit := func(n int) bool { return flags>>n&1 == 1 }
	cf, pf, zf, sf, of := bit(0), bit(2), bit(6), bit(7), bit(11)
	is := [...]bool{of, cf, zf, cf || zf, sf, pf, sf != of, zf || sf != of}[condition/2]
	return is != (condition%2 == 1)
}

// putIndex puts the index of a switch, or its target, where the site looks for it.
func (s *process) putIndex(f *frame, site *plan.Site, c *plan.Capture, regs *usermode.Registers,
	taken bool) {
	if taken != c.Taken {
		return
	}
	table := &f.r.Blocks[c.Table]
	value := s.random.Uint64()
	if c.Kind == plan.SwitchTarget {
		f.target = table.Succ[f.out]
		value = imageBase + f.r.Blocks[f.target].Lo
	} else {
		i := s.dice(len(table.Table.Targets))
		f.target = table.Table.Targets[i]
		mask := ^uint64(0) >> (64 - 8*uint(c.Operand.Size))
		value = value&^mask | (uint64(i)-uint64(c.Bias))&mask
	}
	if !c.Operand.Mem {
		regs.General[c.Operand.Reg] = value
		return
	}
	s.store(c.Operand, regs, value)
}

// store writes what a memory operand reads.
func (s *process) store(o x86.Operand, regs *usermode.Registers, value uint64) {
	address := uint64(o.Disp)
	if o.RIP {
		address += imageBase
	}
	if o.Base >= 0 {
		address += regs.General[o.Base]
	}
	if o.Index >= 0 {
		address += regs.General[o.Index] * uint64(o.Scale)
	}
	was, _ := s.machine.Memory.Read(address, 8)
	mask := ^uint64(0) >> (64 - 8*uint(o.Size))
	s.machine.Memory.Set(address, was&^mask|value&mask)
}
