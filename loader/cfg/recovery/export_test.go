package recovery

// LimitSteps has the search for jump tables take so many steps and no more than those for each
// instruction, until restore is called.
func LimitSteps(n int) (restore func()) {
	was := baseSteps
	baseSteps = n
	return func() { baseSteps = was }
}
