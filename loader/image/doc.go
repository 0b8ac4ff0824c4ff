// Package image reads what a tracer must know of an x86-64 ELF file: its bytes by link-time
// address, the contiguous pieces of its code with their unwind rows and landing pads, symbols,
// imports, relocations, source lines and inlined calls. It promises to read only the file it was
// given, and what is installed for its build id under /usr/lib/debug; to answer hostile files with
// an error in bounded time and memory; and to be safe for concurrent use once open. It does not
// disassemble, knows no process, and follows no link by which a file names its debug information.
// An image without .eh_frame (Go's, for example) has no ranges.
package image
