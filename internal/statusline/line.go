package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"wpptrace/internal/record"
)

// A statusLine shows the state of a recording on a terminal, in one line that is written again
// every second. All other messages go by way of it, so that they have lines of their own. Messages
// may come from any goroutine.
type statusLine struct {
	out   io.Writer
	width func() int // of the terminal; nil: there is none
	at    time.Time
	paths uint64 // then

	mu    sync.Mutex // of out and what follows
	shown bool
}

func newStatusLine(w io.Writer, quiet bool) *statusLine {
	l := &statusLine{out: w, at: time.Now()}
	f, ok := w.(*os.File)
	if quiet || !ok || !term.IsTerminal(int(f.Fd())) {
		return l
	}
	l.width = func() int {
		width, _, err := term.GetSize(int(f.Fd()))
		if err != nil || width <= 0 { // a terminal may not know
			return usualWidth
		}
		return width
	}
	return l
}

// Write writes a message in place of the line, which comes again at its time.
func (l *statusLine) Write(message []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
	return l.out.Write(message)
}

const usualWidth = 80

// due reports whether the time of the line has come.
func (l *statusLine) due(now time.Time) bool { return l.width != nil && now.Sub(l.at) >= time.Second }

// showText writes a line when its time has come.
func (l *statusLine) showText(text func() string) {
	if now := time.Now(); l.due(now) {
		l.at = now
		l.replace(text())
	}
}

// show writes the line of a recording when its time has come.
func (l *statusLine) show(status func() record.Status) {
	now := time.Now()
	if !l.due(now) {
		return
	}
	s := status()
	text := fmt.Sprintf("%.0fs  %s paths/s  ring %.0f%%  %s rules  ratio %.0f  lost %d",
		s.Duration.Seconds(), short(float64(s.Paths-l.paths)/now.Sub(l.at).Seconds()),
		100*s.Ring, short(float64(s.Rules)), float64(s.Paths)/float64(max(s.Symbols, 1)), s.Lost)
	if s.Windows > 0 {
		text += fmt.Sprintf("  overhead %s  traced %s", percentage(s.Overhead), percentage(s.Sampled))
	} else if s.SlowDownKnown {
		text += "  slow-down " + slowDownText(s.SlowDown)
	}
	l.at, l.paths = now, s.Paths
	l.replace(text)
}

// replace writes the line anew.
func (l *statusLine) replace(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shown = true
	fmt.Fprintf(l.out, "\r\x1b[K%.*s", l.width()-1, text)
}

// clear takes the line away.
func (l *statusLine) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
}

func (l *statusLine) erase() {
	if l.shown {
		fmt.Fprint(l.out, "\r\x1b[K")
		l.shown = false
	}
}

// short writes a number in four characters or so.
func short(n float64) string {
	for _, unit := range []string{"", "k", "M", "G"} {
		if n < 1000 {
			if unit == "" || n >= 100 {
				return fmt.Sprintf("%.0f%s", n, unit)
			}
			return fmt.Sprintf("%.1f%s", n, unit)
		}
		n /= 1000
	}
	return fmt.Sprintf("%.0fT", n)
}
