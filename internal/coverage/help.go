package coverage

// Example and Help are those of the command that observes.
const (
	Example = `  wpptrace coverage -p 4711 -d 1m              what process 4711 runs in a minute
  wpptrace coverage --lcov x.info -- ./test     for genhtml x.info -o html
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
counted. A branch is an outcome of a conditional jump of the machine's.

FILEs are snapshots of -o: what any of them has run is printed together. Their programs are told
apart by build ids.

A table by source file goes to stdout; to stderr with --. SIGINT, SIGTERM, SIGHUP or SIGQUIT ends
it, a second one at once. With --, the exit status is that of COMMAND.`
)
