// Package top shows a recording while it goes on: where the CPU time goes, routines, hot subpaths,
// and what tracing costs. On a terminal it is a screen that keys work on, elsewhere lines.
//
// What is shown is asked of snapshots of the recording, by the queries that answer for a snapshot's
// file, in a process of its own: this program once more, which has given up all power before it
// looks at anything. It reads the names, samples and source files of the traced program, and the
// keys of the user; the recording process does none of that. From the recording comes an update
// once a second over a pipe, and nothing goes back: the recording ends when the viewer does. Who
// calls Start calls Main first in main.
//
// An update is taken between two windows of the recording where there are any; a snapshot of it is
// copied on the recording's goroutine, and packed and sent on another. Where a recording is so
// large that this takes long, snapshots come less often than once a second, so that copying takes
// at most a hundredth of the recording's time and packing a tenth; figures of the recording still
// come every second.
package top
