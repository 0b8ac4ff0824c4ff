package recordreport

import (
	"cmp"
	"fmt"

	"golang.org/x/sys/unix"

	"wpptrace/internal/record"
)

// IsNews reports whether a command has ended in a way that a shell says something about.
func IsNews(s unix.WaitStatus) bool {
	return s.Signaled() && s.Signal() != unix.SIGINT && s.Signal() != unix.SIGPIPE
}

// Exit says how a process, which messages call by this name, has come to its end.
func Exit(process string, e record.Ended) string {
	switch status := e.Status; {
	case e.StatusKnown && status.Signaled():
		text := fmt.Sprintf("%s was killed by %s", process,
			cmp.Or(unix.SignalName(status.Signal()), fmt.Sprintf("signal %d", status.Signal())))
		if status.Signal() == unix.SIGXFSZ {
			text += ": it wrote a larger file than ulimit -f allows"
		}
		return text
	case e.StatusKnown && status.ExitStatus() > 0:
		return fmt.Sprintf("%s has exited with status %d", process, status.ExitStatus())
	}
	return process + " has exited"
}
