package main

import (
	"fmt"

	"wpptrace/internal/record/overhead"
	"wpptrace/internal/text"
)

// forecastText is the forecast for code that never waits.
func forecastText(f overhead.Forecast) string {
	while := "its own code"
	if f.Some {
		while = "these routines alone"
	}
	return fmt.Sprintf("some %s times while it runs %s, %s at most", text.Factor(f.SlowDown(overhead.UsualTime)), while, text.Factor(f.SlowDown(overhead.LeastTime)))
}

// noticeable is the share of single-stepped hits from which they cost as much as a third of the
// others.
const noticeable = 0.01
