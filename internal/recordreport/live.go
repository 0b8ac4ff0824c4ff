package recordreport

import (
	"fmt"
	"time"

	"wpptrace/internal/record"
	"wpptrace/internal/text"
	"wpptrace/query/names"
)

// A Live makes the live line of a recording.
type Live struct {
	Budget float64 // what tracing may take of the process's own CPU time; 0: no limit
	paths  uint64  // in the line that was shown last
}

// Line is the line. since is how long it is that the one before was shown.
func (l *Live) Line(s record.Status, since time.Duration) string {
	line := fmt.Sprintf("%.0fs  ", s.Duration.Seconds())
	if s.Windows > 0 {
		line += fmt.Sprintf("%s  %s paths  overhead %s of %s  lost %d", text.Count(s.Windows,
			"window"), text.Short(float64(s.Paths)), text.Share(s.Overhead),
			text.Share(l.Budget), s.Lost)
	} else {
		line += fmt.Sprintf("%s paths/s  ring %.0f%%  ",
			text.Short(float64(s.Paths-l.paths)/since.Seconds()), 100*s.Ring)
		if s.Rules > 0 { // there are none in a path profile
			line += fmt.Sprintf("%s rules  ratio %.0f  ", text.Short(float64(s.Rules)),
				float64(s.Paths)/float64(max(s.Symbols, 1)))
		}
		line += fmt.Sprintf("lost %d", s.Lost)
		if s.SlowDownKnown {
			line += "  slow-down " + s.SlowDown.String()
		}
	}
	if s.Hottest != "" {
		const width = 30
		line += fmt.Sprintf("  hottest %s %.0f%%", names.Fit(s.Hottest, width),
			100*s.HottestShare.Value())
	}
	l.paths = s.Paths
	return line
}
