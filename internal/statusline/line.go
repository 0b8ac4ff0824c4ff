package statusline

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// A Line shows the state of something on a terminal, in one line that is written again every
// second. All other messages go by way of it, so that they have lines of their own. Messages may
// come from any goroutine.
type Line struct {
	out   io.Writer
	width func() int // of the terminal; nil: there is none
	at    time.Time

	mu    sync.Mutex // of out and what follows
	shown bool
}

// New returns a line for what is written to w: none is shown where that is no terminal, or where
// quiet is set.
func New(w io.Writer, quiet bool) *Line {
	l := &Line{out: w, at: time.Now()}
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
func (l *Line) Write(message []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
	return l.out.Write(message)
}

const usualWidth = 80

// due reports whether the time of the line has come.
func (l *Line) due(now time.Time) bool { return l.width != nil && now.Sub(l.at) >= time.Second }

// Show writes a line when its time has come. since is how long it is that the one before was
// written.
func (l *Line) Show(text func(since time.Duration) string) {
	if now := time.Now(); l.due(now) {
		since := now.Sub(l.at)
		l.at = now
		l.replace(text(since))
	}
}

// replace writes the line anew.
func (l *Line) replace(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shown = true
	fmt.Fprintf(l.out, "\r\x1b[K%.*s", l.width()-1, text)
}

// Clear takes the line away.
func (l *Line) Clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
}

func (l *Line) erase() {
	if l.shown {
		fmt.Fprint(l.out, "\r\x1b[K")
		l.shown = false
	}
}
