package recordreport

// Example is that of the help of a recording.
const Example = `  wpptrace -p 4711 -d 10s              trace process 4711 for ten seconds
  wpptrace -- gzip -c file > file.gz   trace a command from its first instruction to its exit
  wpptrace -F '^parse' -p 4711         only routines whose names begin with parse
  wpptrace --follow-fork -- make       and each process that it starts, in a snapshot of its own
  wpptrace plan -p 4711                what would be probed, and what not and why
  wpptrace hot bash-4711.wpp           hot subpaths of a recording
  wpptrace dump --as insns x.wpp       every instruction that ran`

// Help is the long help of a recording.
const Help = `The process need not be recompiled, restarted or even stopped. It runs slower while
it is traced, and as before afterwards. With -p, tracing takes at most 5% of the process's own CPU
time, averaged over minutes. Where that is not enough to trace all of it, it is traced in windows
with gaps between them: what is in a window is exact, and counts of all that ran are printed as
the interval that they are in. Of a large program those routines are traced then that samples of its
CPU time were in, with routines that they call; -F says which instead, and -F . all. With
--overhead 0 all of it is traced, until it is slowed down by more than --max-slowdown. All of a
COMMAND is traced, whatever that costs.

When the recording ends, the hot subpaths are printed: on stdout with -p; on stderr with --, for
stdout is COMMAND's alone. The last line on stderr says what was lost.

The code of the program itself is traced, and with --lib that of shared libraries, whenever they are
loaded. Go programs cannot be traced.

With --follow-fork the processes that it starts are recorded too, and those that these start. Each
program that one of them becomes by exec is a recording of its own. Each recording has a snapshot of
its own, NAME-PID.wpp. With -o x.wpp the first is x.wpp, the others are x.PID.wpp, and a further one
of the same name is x.PID.2.wpp. A process is stopped for some 0.3 s where it begins. The recording
is over when the last process has ended; then wpptrace hot prints the hot subpaths of each snapshot.
--memory and --ring-size are for all processes together. --memory decides how many are recorded at
the same time: one for each 64M, or 16 with 0. Others run untraced, and a line on stderr says so.
Without --follow-fork, a recording ends when the process calls exec.

SIGINT, SIGTERM, SIGHUP or SIGQUIT ends the recording; a second one ends it at once, without a
snapshot. SIGUSR2 writes a snapshot, and the recording goes on. A COMMAND that outlives the
recording goes on untraced, and wpptrace waits for it; a further signal ends wpptrace alone.
Exit status: 0; 1 on an error; 2 for a command line that is wrong; 3 with --strict, when data were
lost. With --, it is that of COMMAND, or 128 and the signal that ended it.`
