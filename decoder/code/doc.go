// Package code makes of a plan's machine code the instructions that package machine emulates: what
// a snapshot with values holds of the program. It is where loader/x86 and compress/wet meet: no
// opcode passes.
package code
