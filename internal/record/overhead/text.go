package overhead

import (
	"fmt"

	"wpptrace/compress/wpp"
	"wpptrace/internal/text"
)

// String is the slow-down, as far as it is known: "2.5 times", "at least 4.2 times".
func (e Estimate) String() string {
	if e.Vague() {
		return "at least " + Times(e.AtLeast())
	}
	return Times(e.Slower())
}

// Likely is the slow-down and, where it is in doubt, what it is at least.
func (e Estimate) Likely() string {
	switch {
	case e.expected > 0:
		return fmt.Sprintf("some %s times, as its plan lets expect (for sure: %s)",
			text.Factor(e.expected), Times(e.AtLeast()))
	case e.Vague():
		return fmt.Sprintf("some %s, at least %s", Times(e.Slower()), Times(e.AtLeast()))
	}
	return Times(e.Slower())
}

// Times writes a slow-down: CPU time while traced over CPU time without.
func Times(slower float64) string {
	if slower > wpp.MostSlowDown-0.05 {
		return fmt.Sprintf("%d times or more", wpp.MostSlowDown)
	}
	return fmt.Sprintf("%.1f times", slower)
}

// String is the slow-down of code that never waits.
func (f Forecast) String() string {
	while := "its own code"
	if f.Some {
		while = "these routines alone"
	}
	return fmt.Sprintf("some %s times while it runs %s, %s at most",
		text.Factor(f.SlowDown(UsualTime)), while, text.Factor(f.SlowDown(LeastTime)))
}
