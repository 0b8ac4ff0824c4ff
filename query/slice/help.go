package slice

// Example is that of the help of wpptrace slice.
const Example = `  wpptrace slice --at parse+0x4f x.wpp                what made its value at last
  wpptrace slice --at parse+0x4f --instance 3 x.wpp   the third time
  wpptrace slice --at parse+0x1a --forward x.wpp      what came of it`

// Help is the long help of wpptrace slice.
const Help = `SNAPSHOT is a recording of wpptrace values. Each instruction depends on those that
made what it uses, in registers, flags and memory, and on the jump or call that decided that it
runs. The slice is all that the execution depends on in this way, in its thread; with --forward it
is all that depends on the execution. An entry is an instruction, how often it is in the slice, its
source line if that is known, and what it wrote and accessed in the execution that is the nearest to
the one asked for: as wpptrace dump --as values prints it.

Code that is not traced is one step: what a call of it left in registers depends on the call, and
that on the registers that pass arguments. What it wrote to memory comes from nowhere. So does what
other threads wrote.

OFFSET counts bytes from the entry of the routine. Without 0x it is hex, too.`
