// Package variables reads what debug information says of variables: where they are while code runs,
// and of what types they are. DWARF 2 to 5, of gcc, clang and rustc.
//
// A location that it returns says the same by itself: it refers to no other section, to no frame
// and to no unwind table. Where it does not hold for certain, as where a frame is being set up, it
// is left out. It builds on any system.
package variables
