package main

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"wpptrace/internal/remedy"
	"wpptrace/loader/target"
)

// remedies are what a user can do, and by which flags.
var remedies = [remedy.Kinds]string{
	remedy.OtherSnapshot: "name another file with -o",
	remedy.LinkTarget:    "name what it leads to with -o",
	remedy.OtherRaw:      "name another file with --raw",

	remedy.Select: "select more routines with -F and -N",
	remedy.FewerProbes: "select routines of it with -F; wpptrace plan -F says how many probes " +
		"some take",
	remedy.LessKernelMem: "give a smaller --ring-size, or select routines with -F",
	remedy.LessMemory:    "narrow what is traced with -F, or have them allow it more",
	remedy.MoreMemory:    "have them allow it more, or run wpptrace outside of them",
	remedy.ListEach:      "wpptrace plan -v lists each",
	remedy.List:          "wpptrace plan -v lists them",
	remedy.ListAll:       listAll,
	remedy.SelectInliner: "-F with these traces that code: " + listAll,
	remedy.Link:          "link it with -Wl,--build-id, or leave --weights out",
	remedy.OwnWeights:    "record this one, or leave --weights out",
	remedy.FewerLibs:     "name fewer with --lib",

	remedy.LinkInteresting: "link it with -Wl,--build-id, or leave --interesting out",
	remedy.OwnInteresting:  "record this one, or leave --interesting out",

	remedy.FewerRoutines: "select fewer routines with -F",
	remedy.OwnCoverage:   "name a file that wpptrace coverage -o has written",

	remedy.NoBudget:       "leave --overhead out, or see --max-slowdown",
	remedy.NoTrial:        "leave --canary out",
	remedy.NoFollow:       "leave out --follow-fork",
	remedy.Windows:        "--overhead has them taken out; --follow-fork records these, too",
	remedy.RootOrNoFollow: "run wpptrace as root, or leave out --follow-fork",
	remedy.RootOrNoHold:   "run wpptrace as root, or leave out --lib and --on-overflow stop",
	remedy.OtherProfiler: "perf record -g -p PID or go tool pprof show where its CPU time goes; " +
		"--lib traces C libraries that it calls",
	remedy.RecordLater: "start it by wpptrace, or trace it with -p once it runs",
}

const listAll = "wpptrace plan -v lists them; --lib traces those of shared libraries"

// errorText is an error with its remedy, which stands right behind what it is for.
func errorText(err error) string {
	cause, text := err, ""
	var marked *remedy.Error
	var thread *target.ThreadError
	switch {
	case errors.As(err, &marked):
		cause, text = marked, remedyText(marked)
	case errors.As(err, &thread):
		cause = thread
		text = fmt.Sprintf("-p %d --tid %d records it alone", thread.PID, thread.TID)
	default:
		return err.Error()
	}
	before, after, _ := strings.Cut(err.Error(), cause.Error())
	return before + cause.Error() + ": " + text + after
}

// remedyText is the remedy of an error. That of a file may lie where the file does.
func remedyText(e *remedy.Error) string {
	text := remedies[e.Kind]
	switch {
	case e.Kind != remedy.OtherSnapshot && e.Kind != remedy.OtherRaw:
	case errors.Is(e, unix.ENOSPC), errors.Is(e, unix.EDQUOT):
		return "free some space there, or " + text
	case errors.Is(e, unix.EFBIG): // a file system may take no larger ones either
		return "allow larger files with ulimit -f, or " + text
	}
	return text
}
