package pathcount

// Example is that of the help of wpptrace profile.
const Example = `  wpptrace profile -p 4711 -d 1h           an hour of process 4711
  wpptrace profile -- gzip -c file > f.gz  a command from its first instruction to its exit
  wpptrace hot --top 20 gzip-4711.wpp      the paths in which most instructions ran
  wpptrace hot --lines match.c x.wpp       a source file, with how often each line ran
  wpptrace diff before.wpp after.wpp       which paths are new, gone, hotter or colder
  wpptrace profile --overlap 2 -p 4711     and which path follows which, for wpptrace bounds
  wpptrace profile --interesting x.wpp --hot 20 -p 4711   the 20 hottest of x.wpp alone`

// Help is the long help of wpptrace profile.
const Help = `A path profile says how often each path ran, and not in which order: memory and file
are those of the different paths, however long it lasts. All threads count
together. Everything else is as in a recording: what is traced, what it costs, and that with -p it
is traced in windows where more would take over 5% of its CPU time. Then counts are those of the
windows; with --overhead 0 all is counted.

hot, path, diff, stat, merge, compact, plan --weights and plan --interesting take the profile as
they take a recording, as far as the order of paths does not matter. What needs it refuses: find,
rules, order, context, dump, hot --callers, and hot for subpaths of more than one path.

--json prints each path that ran with its count. A count is not exact where events were lost, or
where it has reached 2^64-1: then the path ran so often, or more often.

--interesting SNAPSHOT counts the paths of the executable alone that SNAPSHOT has recorded, by
probes that tell these from each other and from all others, and do nothing else; --hot N has the N
of them in which most instructions ran, -F those of some routines, --pattern those of a sequence,
and -F with --all-paths those as well that never ran. plan --interesting --others prints what they
cost. The kernel counts. Nothing is recorded: how often each path ran is printed at the end.
--others count prints as well how often other paths of the same routines ran. Counts are exact, but
that a path counts that a thread is in the midst of at the end, if it has been seen to be that path.

--overlap K counts besides how each path goes on that ends with the back edge of a loop, with a
direct call of a traced routine, or with the return of one: up to the K+1st predicate, which is a
block with two or more successors, or the end of a path. The more of that is known, the narrower
wpptrace bounds prints how often one path followed another. plan --overlap K prints how many
overlapping paths there may be, and which K is the greatest that tells more apart.`
