// Package slice says what executed instructions depend on (Zhang and Gupta 2004, section 2): by
// registers, flags and bytes of memory, and by the jumps that decided that they were executed. From
// there on it follows dependences back, to all that made a value, or forward, to all that a value
// has made.
//
// It promises that a dependence that it has is one, as long as no other thread and no external code
// wrote what lies between, and that an instruction has all of those that its own thread made: where
// that is not known, it says so. Code that is not traced is one step: what its call left in
// registers depends on the call, and that on the registers that pass arguments. Behind a call that
// has returned, the stack pointer and the registers that it has left as they were are those of
// before it, whoever moved them meanwhile. Where what is read is not what the thread has left
// there, others have written it, and a slice ends. It builds on any system.
package slice
