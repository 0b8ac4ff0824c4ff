// Package record records whole program paths: Run plans the probes of a process, puts them in,
// decodes and compresses what they report, and writes the snapshot. What happens meanwhile is
// handed to the caller as Events; nothing is printed.
//
// Events come in this order, each once at most, unless it says otherwise:
//
//	NotSampled        where it is not possible to sample
//	Planned           nothing has touched the process yet
//	Forecast          of a process that was at work already
//	Attached          the probes stand, and report nothing yet
//	Began             they report
//	Progress          several times a second
//	WindowClosed      the first window, where the process would exceed its budget
//	WindowsBegin      behind that
//	WindowOpened      and WindowClosed in turn, from then on
//	SitesCounted      between some of the windows
//	SnapshotWritten   for each snapshot in the middle; if it failed, SnapshotFailed, which may
//	                  come after Ended
//	Ended             says why; the probes go out after it
//	DebugInfoMissing  for each image that some is missing of
//
// LibraryAdded and LibraryLeftOut come for each library, from before Planned to Ended. Forked,
// CopiesStay and LetGoOn come when that happens, or is found out after Ended; ForksCounted behind
// Ended. Where a recording fails, the error of Run comes in place of all events that would follow.
//
// A Recorder is one recording. Its state is parted by who changes it: threads hold what each thread
// has done, usage what the process has used and what tracing costs it, windows put probes in and
// take them out, sampling is where its CPU time goes while probes do not slow it down, images are
// the executable and its libraries, as far as they are traced, and snapshots are made of all that.
//
// The probes belong to a guard, a process that is this program once more, so that they go whatever
// becomes of the recording. Who calls Run calls guard.Main first in main.
package record
