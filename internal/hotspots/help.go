package hotspots

// Help explains the question.
const Help = `A subpath is a sequence of acyclic paths that ran one after the other. It is hot if
COUNT times the cost of its paths is -C or more. Where it overlaps itself, that is more than its
SHARE. It is minimal if no shorter beginning of it is hot (Larus 1999). All minimal hot subpaths are
found. -l 1 -L 1 lists single paths, -l 3 -L 3 sequences of three. The counts of all threads are
added up; --tid asks for one thread. Where no instructions are known, as after wpptrace compress,
each path costs 1.

--maximal finds the longest instead, up to -L: those that one more path, before or behind, would
make rarer. --larus finds those that Larus's own algorithm (1999, figure 7) reports: a quick choice
of the minimal ones and of some that are longer, which misses most. Counts are exact in all three.

--cost FILE takes a table of costs: CSV with a header. The column "path" has ROUTINE#N, in full as
--json has it. Other columns have whole numbers; :COLUMN names the one to take. A column "before"
may name another path in some rows: the cost is then that of executions directly behind that path,
with no mark between. Such executions count apart: a line "after ROUTINE#N" says so.

SHARE    what ran within the subpath, as a share of all; where subpaths overlap, it counts in each
CUM.     what ran within it or one above it, counted once
COUNT    how often the subpath ran
LEN      how many paths it has
SUBPATH  a line for each path: ROUTINE#N, path N of the routine (wpptrace path prints more); where
         its code is, and in parentheses the routines that are inlined there; xN: N times in a row.
         ROUTINE@ADDRESS is one of several routines of that name.

--data finds sequences of addresses that were accessed, as subpaths are of paths: see wpptrace
values. Accesses to routines' own frames are left out.

--routines prints a line for each routine instead. SHARE is that of the CPU time, by samples, with
the INTERVAL that it is in 95 times of 100; where the snapshot has no samples, that of instructions.
What a routine calls is not in its share. CALLS is how often the routine was entered, PATHS how many
of its paths ran. HOTTEST PATH is the one that ran most instructions of it: its number, its share of
the routine's instructions, where its code is.

--callers ROUTINE prints who called it, and how often. The caller is the innermost traced routine
that had not returned: external code may lie between, as where qsort calls what it was given.
Behind a tail jump of another routine, the caller is who called that one, which is named, too.
"(none known)" is external code, as that which starts a thread, or what was called before the
recording began. Where code of the routine is inlined, its calls are not counted, which is said.

--lines FILE prints a source file with how often each line ran that has code. FILE is read where it
is named, or else where debug information says that it is. COUNT is how often the instruction of the
line ran that ran most often; where the line has code in several routines, or is inlined in several
places, these are added up. An optimizing compiler moves code, merges that of several lines, or
writes some twice: then it may not be how often the source would run the line. Lines without a
COUNT have no code, or only in routines that did not run or were not traced.

--disasm ROUTINE prints its instructions, with how often each ran. The snapshot has where they are;
what they are is read from the program or library: where it was recorded, or where --binary says, if
its build id agrees. Between instructions that do not follow each other is an empty line.

In a recording in windows, all that these count is what ran in the windows. IN ALL is the interval
that the count of the whole run is in, 95 times of 100 (with --routines, that of CALLS); "-": it is
not known, as of what ran in one window alone.`

// Example are command lines that ask.
const Example = `  wpptrace hot bash-4711.wpp                 of 1 % of all instructions or more
  wpptrace hot --top 5 -C 5% bash-4711.wpp   the five hottest of those of 5 % or more
  wpptrace hot --cost count -l 3 -L 3 x.wpp  sequences of three paths, by how often they ran
  wpptrace hot --cost t.csv:misses x.wpp     by what has been measured elsewhere
  wpptrace hot --maximal -L 20 x.wpp         as long as they get, up to twenty paths
  wpptrace hot --routines --top 20 x.wpp     the twenty hottest routines
  wpptrace hot --callers xmalloc x.wpp       who calls xmalloc, and how often
  wpptrace hot --lines match.c x.wpp         a source file, with how often each line ran
  wpptrace hot --disasm longest_match x.wpp  instructions, with how often each ran`
