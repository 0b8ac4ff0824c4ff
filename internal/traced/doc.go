// Package traced has what is known of an executable, or of a library, before anything is attached:
// its image, which of its routines are selected, and the plan of their probes.
//
// Load reads a file and plans it. LoadOf and LoadLibrary do so for a process, which they only look
// at, and leave out the routines that the process has changed. A Selection says which routines are
// traced: by name or, where it names none and the image is large, by its Chooser. No more of a
// large image is recovered than is selected.
//
// An expression that matches nothing is an error that says what may be meant: a similar name, or
// the routines into which it is inlined. A file may be hostile: whatever bytes it has, loading ends
// with a Program, or an error of one line. A Program changes only as libraries are added to its
// plan; it is for one goroutine at a time.
package traced
