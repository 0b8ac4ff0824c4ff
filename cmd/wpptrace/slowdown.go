package main

import (
	"fmt"

	"wpptrace/compress/wpp"
	"wpptrace/internal/record/overhead"
	"wpptrace/internal/text"
)

// slowDownText is a slow-down, as far as it is known.
func slowDownText(e overhead.Estimate) string {
	if e.Vague() {
		return "at least " + times(e.AtLeast())
	}
	return times(e.Slower())
}

// likelySlowDownText is a slow-down, and, where it is in doubt, what it is at least.
func likelySlowDownText(e overhead.Estimate) string {
	switch {
	case e.Expected > 0:
		return fmt.Sprintf("some %s times, as its plan lets expect (for sure: %s)",
			text.Factor(e.Expected), times(e.AtLeast()))
	case e.Vague():
		return fmt.Sprintf("some %s, at least %s", times(e.Slower()), times(e.AtLeast()))
	}
	return times(e.Slower())
}

// times writes a slow-down.
func times(slower float64) string {
	if slower > wpp.MostSlowDown-0.05 {
		return fmt.Sprintf("%d times or more", wpp.MostSlowDown)
	}
	return fmt.Sprintf("%.1f times", slower)
}

// forecastText is the forecast for code that never waits.
func forecastText(f overhead.Forecast) string {
	while := "its own code"
	if f.Some {
		while = "these routines alone"
	}
	return fmt.Sprintf("some %s times while it runs %s, %s at most",
		text.Factor(f.SlowDown(overhead.UsualTime)), while,
		text.Factor(f.SlowDown(overhead.LeastTime)))
}

// noticeable is the share of single-stepped hits from which they cost as much as a third of the
// others.
const noticeable = 0.01
