// Package sweep decodes the code of an image once, from end to end, and collects what the image
// says of its code, and its code of itself, before control is followed.
//
// Code has the instructions, in pieces: one for each frame description entry. File has names,
// imports, and References: who mentions which address. What is found per instruction lies in slices
// that run parallel to Code.Insns, and packages above it name an instruction by its index there.
//
// A Survey is the same pass, but that it keeps no instructions: it notes of each piece what a
// recovery of other pieces has to know of it.
package sweep
