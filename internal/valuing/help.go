package valuing

// Example is that of the help of wpptrace values.
const Example = `  wpptrace values -F parse -- ./server -t   what parse computes, from start to exit
  wpptrace values -p 4711 -F '^(push|pop)$' -d 10s
  wpptrace values --stat server-4711.wpp    how much of it is known
  wpptrace values --at parse.c:42 server-4711.wpp     what the code of a line computed, each time
  wpptrace values --at end server-4711.wpp            where it crashed
  wpptrace values --at 'push+0x1c' --histogram x.wpp  which values one instruction has had
  wpptrace values --var 'parse.p->depth' x.wpp        each value that a variable or field took
  wpptrace dump --as values server-4711.wpp every instruction, with what it wrote and accessed`

// Help is the long help of wpptrace values.
const Help = `The recording has, besides the paths, what each instruction of the traced routines
wrote to general registers, and what it read from memory and wrote to it. At a probe the registers
are seen and the memory is read that instructions up to the next probe will read; what these compute
is emulated. All else is as in a recording: hot, find, stat and the others read the snapshot as
they read one of paths.

A value is confirmed, unconfirmed or unknown. Confirmed: it follows from what was seen, and what was
seen later agrees. Unconfirmed: nothing has shown that it is wrong, but other code could have
changed what it follows from. Unknown: it follows from what was not seen, or from an instruction
that is not emulated. What is unknown is printed as -, never as a guess.

Values cost more than paths: name the routines with -F. They are those of the executable alone, and
of the shared libraries that --lib names. Of what these call and what is not traced, nothing is seen
but what it leaves behind.

--at PLACE prints each execution of a source line, FILE:LINE; of a routine's first instruction,
ROUTINE, when the routine is called; or of one instruction, ROUTINE+OFFSET or its ADDRESS in the
program file or in the process: the number of the execution, its thread, the position in the
thread's stream, and each instruction's values as dump --as values has them. --instance N prints
execution N alone, --tid those of a thread. An execution of a line lasts until another line of the
routine runs; what the line calls does not end it. OFFSET is in bytes, in decimal, or with 0x in
hex; ADDRESS is in hex. PLACE may also be the word end: what a thread did last. Where the process
died of a fault, that is the instruction that faulted.

--var NAME prints each value that a variable takes, local or global, with its routine as
ROUTINE.NAME: a line when it has its first in an activation of its routine, and one each time that
it changes, with the number of the activation, the thread, the position and the source line that
runs next; --instance N is the Nth activation. Behind NAME may be what C would have there, as in
NAME.FIELD, NAME->FIELD, NAME[3] and *NAME; of what is made of several numbers there is each. The
debug information of the program, built with -g, says where variables are.

--stat prints how much of the values of a recording is known, and what is not, by cause. With --csv
it prints how large they are and how fast they answer: the tables of Zhang and Gupta (2004), with
the paper's averages beside.`
