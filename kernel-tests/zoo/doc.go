// Package zoo holds small C and C++ programs, one for each thing that is hard about tracing paths,
// and compiles them on demand.
//
// Each program is deterministic: in every run the main executable executes the same instructions (a
// timer's handlers apart), whatever the addresses, the time and the environment. It executes at
// most some 60,000 instructions of its own at -O0, prints a checksum and ends with the status that
// Program.Exit documents. A static build adds those of the C library, which branches on address
// bits: run it without address randomisation.
package zoo
