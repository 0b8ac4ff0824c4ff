package recordreport

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"wpptrace/internal/record"
	"wpptrace/internal/text"
	"wpptrace/internal/traced"
	"wpptrace/query/names"
)

// Unmatched says of a glob that it has named no library so far.
func Unmatched(glob string, pid int) string {
	return fmt.Sprintf("--lib %q names no library that process %d has loaded so far", glob, pid)
}

// NeverMatched says of a glob that it has named no library until the end.
func NeverMatched(glob string, pid int) string {
	return fmt.Sprintf("--lib %q has named no library: grep '\\.so' /proc/%d/maps lists those that "+
		"a process has, while it runs", glob, pid)
}

// UnmatchedAll says which globs and, where libraries are traced, which expressions of a selection
// have matched nothing in all of a recording, a message each.
func UnmatchedAll(r *record.Result, sel traced.Selection, pid int) (messages []string) {
	for _, glob := range r.Unmatched {
		messages = append(messages, NeverMatched(glob, pid))
	}
	if len(sel.Libraries) == 0 {
		return messages
	}
	add := func(flag string, list []*regexp.Regexp) {
		for _, re := range sel.Unmatched(list, r.Program.Plan) {
			messages = append(messages, fmt.Sprintf("%s %q has matched no routine: wpptrace plan "+
				"-v lists those of a program, wpptrace plan -v LIBRARY those of a library", flag, re))
		}
	}
	add("-F", sel.Only)
	add("-N", sel.Not)
	return messages
}

// LeftOut says why a library that --lib names is not traced. explain is what an error is printed
// as.
func LeftOut(e record.LibraryLeftOut, explain func(error) string) string {
	return fmt.Sprintf("%s is not traced: %s", names.Printable(e.Path), explain(e.Err))
}

// NotFollowed says that those processes are not followed that another had started before.
func NotFollowed(process string, pids []int) string {
	const most = 5 // that are listed
	var list []string
	for _, pid := range pids[:min(len(pids), most)] {
		list = append(list, strconv.Itoa(pid))
	}
	if len(pids) > most {
		list = append(list, "...")
	}
	return fmt.Sprintf("%s had started %d others before (%s), which are not followed: -p records "+
		"one of them",
		process, len(pids), strings.Join(list, ", "))
}

// Forks says what has become of the processes that one has started.
func Forks(process string, e record.ForksCounted) string {
	line := fmt.Sprintf("%s has started %s, not recorded", process,
		text.Count(uint64(e.Started), "other"))
	if e.Copies == 0 {
		return line
	}
	return fmt.Sprintf("%s: %d may have had copies of probes, which slow down, for %v at most",
		line, e.Copies, e.Longest.Round(time.Millisecond))
}

// NextWindow says when the next window may begin, of a recording that goes on for so long, 0 if
// nobody knows; nothing where that is soon.
func NextWindow(wait, left time.Duration) string {
	const soon = time.Second
	switch {
	case wait <= soon:
		return ""
	case left > 0 && wait > left:
		return fmt.Sprintf(", the next in some %.0f s at its present load, when -d is over",
			wait.Seconds())
	default:
		return fmt.Sprintf(", the next in some %.0f s", wait.Seconds())
	}
}
