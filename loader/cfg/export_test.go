package cfg

import "wpptrace/loader/x86"

// EffectOf is what registers hold after an instruction, which is not one of control flow, and
// whether it leaves the flags alone.
func EffectOf(in x86.Inst, code []byte) (regs Registers, keeps bool) {
	e := effectOf(in.Effects(code, 0))
	regs = Unchanged()
	regs.step(&e)
	return regs, in.KeepsFlags()
}

const MostRounds = mostRounds

// IsNoReturnImport says whether a function of another image never returns by its name.
func IsNoReturnImport(name string) bool { return isNoReturnImport(name) }

// LimitSteps has the search for jump tables take so many steps and no more than those for each
// instruction, until restore is called.
func LimitSteps(n int) (restore func()) {
	was := baseSteps
	baseSteps = n
	return func() { baseSteps = was }
}
