package top

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"wpptrace/loader/privilege"
)

// The kinds of a viewer.
const (
	asLines = iota
	asScreen
)

// arguments are those with which this program is started again, to be a viewer of a kind.
var arguments = [...][]string{asLines: {"wpptrace", "view"}, asScreen: {"wpptrace", "view-screen"}}

// recordingFD is the pipe's end that the viewer is started with.
const recordingFD = 3

// Main is to be called first in main, or in TestMain, of a program that calls Start: Start starts
// that program again. There Main is the viewer, and does not return; elsewhere it returns at once.
func Main() {
	kind := slices.IndexFunc(arguments[:],
		func(a []string) bool { return slices.Equal(a, os.Args) })
	if kind < 0 {
		return
	}
	if err := view(kind); err != nil {
		fmt.Fprintf(os.Stderr, "wpptrace: %v\n", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// view shows what comes over the pipe until there is no more.
func view(kind int) error {
	if err := privilege.Renounce(); err != nil {
		return err
	}
	yield()
	pipe := os.NewFile(recordingFD, "the recording")
	defer pipe.Close()
	updates := gob.NewDecoder(pipe)
	var first update
	if err := updates.Decode(&first); err != nil || first.Opening == nil {
		return fmt.Errorf("read from the recording: %w: wpptrace starts its viewer itself", err)
	}
	if kind == asScreen {
		return showScreen(first.Opening, updates)
	}
	// a signal is for the recording, which ends it with the pipe
	signal.Ignore(unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT)
	return printLines(os.Stdout, first.Opening, updates)
}

// yield has this process, with all its threads, scheduled after others: what is traced works.
func yield() {
	const nice = 10
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, t := range threads {
		if id, err := strconv.Atoi(t.Name()); err == nil {
			_ = unix.Setpriority(unix.PRIO_PROCESS, id, nice)
		}
	}
}

// next reads an update; false: there are no more.
func next(updates *gob.Decoder) (u update, more bool, err error) {
	err = updates.Decode(&u)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) { // it was killed amid one
		return u, false, nil
	}
	return u, err == nil, err
}
