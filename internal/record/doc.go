// Package record records whole program paths: Run plans the probes of a process, puts them in,
// decodes and compresses what they report, and writes the snapshot. What happens meanwhile is
// handed to the caller as Events; nothing is printed.
//
// A Recorder is one recording. Its state is parted by who changes it: threads hold what each thread
// has done, usage what the process has used and what tracing costs it, windows put probes in and
// take them out, images are the executable and its libraries, as far as they are traced, and
// snapshots are made of all that.
//
// The probes belong to a guard, a process that is this program once more, so that they go whatever
// becomes of the recording. Who calls Run calls guard.Main first in main.
package record
