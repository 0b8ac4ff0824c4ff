package coverage

// Example and Help are those of the command that observes.
const (
	Example = `  wpptrace coverage -p 4711 -d 1m              what process 4711 runs in a minute
  wpptrace coverage --lcov x.info -- ./test     for genhtml --branch-coverage x.info -o html
  wpptrace coverage --lib 'libssl*' -p 4711     of a library, too
  wpptrace coverage -o a.wpp -- ./test a        a baseline for wpptrace residual
  wpptrace coverage a.wpp b.wpp -o all.wpp      several runs, as one`
	Help = `Each block of code has a probe until it has run. So the process soon runs at full
speed, and what it runs that is new is still seen. It need not be recompiled.

With -p and --attach-all it is known what has run since wpptrace attached, with -- since COMMAND
began. Whether code has run is known, and not how often: counts in the file of --lcov are 0 and 1.
Code that cannot be observed is left out: routines that wpptrace plan -v lists as left out, those
that -F and -N do not select, and blocks without an instruction that may carry a probe. A line has
run if any of its code has; it has not if all of its code is known not to have.

Lines and branches are those of debug information: build with -g. Without, blocks and routines are
counted, the 20 routines listed of which most has run, and a file of --lcov holds nothing. A branch
is an outcome of a conditional jump of the machine's.

FILEs are snapshots of -o: what any of them has run is printed together. Their programs are told
apart by build ids.

A table by source file goes to stdout; to stderr with --. --json lists all files and routines.
SIGINT, SIGTERM, SIGHUP or SIGQUIT ends it, a second one at once. With --, the exit status is that
of COMMAND.`

	ResidualExample = `  wpptrace coverage -o a.wpp -- ./test           what the test runs
  wpptrace residual -p 4711 --baseline a.wpp     what production runs that it does not
  wpptrace residual -p 4711 --baseline a.wpp --baseline b.wpp --log new.jsonl
  wpptrace residual --edges -p 4711 --baseline a.wpp   new outcomes of jumps, too
  wpptrace residual --paths -p 4711 --baseline a.wpp   new ways through old code, too`
	ResidualHelp = `A baseline is a snapshot of wpptrace coverage -o, a recording or a path
profile, of the same build. Only blocks that no baseline has run have a probe. So while the process
does what they have done, no probe is hit and it runs at full speed. What is new is reported within
a second, each block once: the time, the thread, the routine, the source line and the callers.

Not watched are blocks of which the baselines do not say whether they have run them.

With --edges, an outcome of a conditional jump is reported, too, that no baseline has taken and that
leads to a block which runs anyway. That costs a hit whenever such a jump runs the old way; how many
is printed first. With -p, the jumps that are hit most are not watched any more where all of them
take more than --overhead of the CPU time.

With --paths, routines of the program that run paths which no baseline has are reported, too: how
often, at least, as counters say that are read every 200 ms. The baselines are recordings or path
profiles then. This costs hits all the time; how many probes it takes is printed first. With -p, it
ends where hits take more than --overhead of the CPU time, and new blocks alone are reported.

With --restarts and -p, another process of the same name and build is watched when this one has
ended: one that runs already, or the next. What has been reported is not reported again.

Events go to stdout, a line each, with --json as a JSON object each; with -- to stderr. --log writes
the objects to a file, too. Where more than --most come in a second, the rest is counted, but for
the first of each routine. SIGINT, SIGTERM, SIGHUP or SIGQUIT ends it; at the end it is printed how
much was new.`
)
