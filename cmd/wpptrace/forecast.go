package main

import (
	"fmt"

	"wpptrace/internal/record/overhead"
)

// forecastText is the forecast for code that never waits.
func forecastText(f overhead.Forecast) string {
	while := "its own code"
	if f.Some {
		while = "these routines alone"
	}
	return fmt.Sprintf("some %s times while it runs %s, %s at most", factor(f.SlowDown(overhead.UsualTime)), while, factor(f.SlowDown(overhead.LeastTime)))
}

// factor writes a number without digits that mean nothing.
func factor(x float64) string {
	if x >= 10 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.1f", x)
}

// noticeable is the share of single-stepped hits from which they cost as much as a third of the
// others.
const noticeable = 0.01
