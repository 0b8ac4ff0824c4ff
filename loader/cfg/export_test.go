package cfg

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
