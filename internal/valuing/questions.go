package valuing

// SliceExample is that of the help of wpptrace slice.
const SliceExample = `  wpptrace slice --at parse+0x4f x.wpp        what made its value at last
  wpptrace slice --at parse+0x4f --instance 3 x.wpp
  wpptrace slice --at parse.c:42 --instructions x.wpp    what made all that the line computed
  wpptrace slice --at end x.wpp              what made the program crash
  wpptrace slice --at parse+0x1a --forward x.wpp     what came of it`

// SliceHelp is the long help of wpptrace slice.
const SliceHelp = `SNAPSHOT is a recording of wpptrace values. Each instruction depends on those
that made what it uses, in registers, flags and memory, and on the jump or call that decided that it
runs. The slice is all that the execution depends on in this way, in its thread; with --forward it
is all that depends on the execution. An entry is a source line, or what of a routine has none that
is known, the nearest first. AWAY is how many dependences between lines lead to it, at least; TIMES
how often its instructions are in the slice. Beside it is what it read from memory and wrote there,
or else what its first instruction computed, when it ran nearest to the execution asked for, as
wpptrace dump --as values prints it; (1 of N) says how many times it is in the slice.

Of a thread that executed more than --most instructions, those before the execution that is asked
for are looked at, with --forward those behind it, and where that was cut off is printed.

--instructions prints an entry for each instruction instead, with all that it wrote and accessed,
those that ran nearest to the one asked for first.

Code that is not traced is one step: what a call of it left in registers depends on the call, and
that on the registers that pass arguments. What it wrote to memory comes from nowhere, and so does
what other threads wrote: the slice ends where it reads that, and says so, and where the thread
itself had written there before, and which store of another thread it is likely to be.

PLACE and N are those of wpptrace values --at. Of a source line the slice is of all that the
execution computed, but not of jumps and returns.`

// WatchExample is that of the help of wpptrace watch.
const WatchExample = `  wpptrace watch 55eea06792a8:4 x.wpp   who accessed these 4 bytes
  wpptrace watch --writes 55eea06792a8 x.wpp
  wpptrace watch --writes parse.depth x.wpp   who wrote a local variable
  wpptrace watch --csv table x.wpp            a global one, for a program`

// WatchHelp is the long help of wpptrace watch.
const WatchHelp = `SNAPSHOT is a recording of wpptrace values. ADDRESS is the process's, in hex, as
dump --as values and slice print it; SIZE is 1 byte if it is not given, and at most 4096. VARIABLE
is one as values --var takes it: NAME or ROUTINE.NAME, and what is behind it, as in NAME->FIELD. A
local one is watched where it is in memory, from where debug information has it there until its
activation ends, and in its own thread: not where the head of its routine puts arguments there.
While it is in a register, nothing of it is an access. A line is printed for each access to any of
the bytes: the thread, how many paths and marks of it came before, the instruction and its source
line if that is known, and the access. Threads come one behind the other: how they ran beside each
other is not known.

Accesses of code that is not traced are not known. How many accesses of traced code are left out, as
their addresses are not known, is printed at the end.`

// StepExample is that of the help of wpptrace step.
const StepExample = `  wpptrace step x.wpp
  echo 'break parse.c:42
  continue
  info locals
  reverse-next' | wpptrace step x.wpp       what they had there, and the line before
  wpptrace step --dap x.wpp                 for an editor`

// StepHelp is the long help of wpptrace step.
const StepHelp = `SNAPSHOT is a recording of wpptrace values. Commands are read from the standard
input, one a line, as a debugger's. They move through what a thread has executed: next and step by
source line, over calls and into them, stepi by instruction, finish out of a routine, continue to a
place that break names; and each of them back in time, with reverse- before it: rn, rs, rsi, rc. A
number behind a command has it repeated, and an empty line repeats the one before. help lists all.

Where the thread stands, the line has not run yet. where prints the calls that led there, and up and
down go along them. info locals and info globals print what variables have there, print VARIABLE and
print $REGISTER what one of them has, x/ADDRESS:SIZE what memory holds. - is what is not known, and
? stands behind what is not confirmed: see wpptrace values --help. Memory is what the thread has
read and written since its values were last recorded whole, which is every million instructions or
so. list prints the source around, if the file is there.

watch VARIABLE, or watch ADDRESS:SIZE, has each move stop at an instruction that writes there, and
at one that finds there what code that is not traced, or another thread, has written. So rc goes
back to who wrote what is there. goto POSITION goes to where watch, values and slice print that
something was.

--dap serves an editor instead, which then debugs backwards, too: VS Code, Neovim, Emacs or another
that speaks the Debug Adapter Protocol. SNAPSHOT may be left out: program of what the editor
launches is then the snapshot. With a port it waits for one editor there.

Of code that is not traced, nothing is stepped through: it is part of the instruction that calls
it. Each thread is stepped through by itself.`
