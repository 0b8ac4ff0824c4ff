package planreport

// Example has commands that ask for plans.
const Example = `  wpptrace plan -p 4711            of a process
  wpptrace plan -v /usr/bin/bash   of a file, routine by routine; needs no privileges
  wpptrace plan --complete -F '^parse' /usr/bin/bash
  wpptrace plan --lib 'libssl*' -p 4711   and of a library that it has loaded
  wpptrace plan --canary -p 4711   and how much slower it really gets: probes stand for a moment
  wpptrace plan --verify FILE      prove that the events determine every path
  wpptrace plan --routine main FILE   the blocks of one routine, and what the probes there record
  wpptrace plan --routine main --dot FILE | dot -Tsvg > main.svg
  wpptrace plan --interesting x.wpp FILE   how compactly the paths in x.wpp can be numbered`

// Help says what is asked for and what is printed, as the help of a command does.
const Help = `Nothing is attached, except with --canary. The lines that are printed:

  routines        how many are traced, of all; how many of these need no probe, as their callers
                  imply what they do, and how many more make no event in some activations
  acyclic paths   of all traced routines
  loops           that need no probe, as registers say how many rounds they run
  probes          emulated ones cost about 0.5 us a hit, single-stepped ones 20 to 40 times that
  expected hits   for each acyclic path that runs, and for 1000 instructions
  warning         that many of these are single-stepped, and slow; and the routine with most
  slow-down       of the program's own code, if it computes and never waits; and at most, if it
                  runs as fast as any processor can
  canary          the slow-down that --canary measured
  inlined         routines not selected by -F that hold inlined code of those that are
  left out        routines that are not traced, by reason, with one of them each
  not listed      code in no routine, which is not traced
  libraries       that the program loads, and that are not traced
  verified        or not: what --verify found

Expected hits rest on a static estimate of how often each block runs, or on how often it ran in the
recording that --weights names. The slow-down is no more certain than that estimate: what a library
calls back, as qsort does, may run any number of times. Time in libraries, in the kernel and asleep
stays as it is. With -F or -N the slow-down is that of the selected routines while they run; the
others run as ever. What a hit takes is assumed; a virtual machine may take ten times that. --canary
measures the slow-down: the probes stand in the process for 50ms, nothing is kept, and they go
again. That is of all its CPU time, in libraries and in the kernel too. Where hits took nearly all
of it, the least that the slow-down can be is printed, and the most, by the instructions that ran.

With -p the plan is that of a recording in windows, which -p makes unless --overhead 0 is given or
this kernel lacks what windows take. Every loop has a probe then, for windows begin and end amid
loops. Of a FILE the plan is that of a recording without windows.

--verify proves the plan, apart from what made it: between two events there is one probe-free route
at most; no circle of jumps or calls runs without an event; and external code (libraries that are
not traced, the kernel, routines left out) can break no probe-free route by calling back, throwing
or jumping. Each fault names its routine and the blocks of both routes that no event distinguishes;
then the exit status is 1.

--routine NAME prints the plan of one routine instead. NAME is its name, its symbol, or the address
of its entry. Each block has its addresses, its line of source where that is known, how it ends and
where it goes. A block with a probe has the instruction that carries it, emulated or single-stepped,
and what each event records: the activation, whether the jump is taken, and a captured value, if one
decides where a switch goes, what jumps ahead do, or how often a loop runs. The activation is
recorded by its frame's address, the CFA: that above the return address, which is rsp+8 at the
entry. A route is what runs between two events of the routine. A block without a probe is known by
the routes that it is on. A loop without a probe is in a route once, as 2 (rounds), for all its
rounds. --dot draws the blocks for Graphviz.

--interesting SNAPSHOT prints instead how an array can count the paths that SNAPSHOT has recorded:
their probes' hits, as often as each path ran, and for each routine its paths, how many of these are
interesting, the range of their identifiers, which is the number of counters, and its compactness:
identifiers for each interesting path, 1 at best. --hot N takes the N paths in which most
instructions ran, -F those of some routines, --pattern those that a sequence names, as find takes
it, where they ran as a part of it, and -F with --all-paths those as well that never ran, of
routines that have 100 at most. All other paths can be told from these, and be counted together.
--others chooses probes that do nothing but tell these paths from each other and from all others,
and prints how often they would have been hit: with ignore, other paths need make no hit; with
count, those of a routine are counted together. What is chosen is proven; it takes some seconds, or
a minute.

--overlap K prints instead how many overlapping paths profile --overlap K may count: for each
routine those over the back edges of its loops, those into what it calls directly, and those back
from there; and the greatest K that tells more of them apart than the one before. --json has each
loop and call.`
