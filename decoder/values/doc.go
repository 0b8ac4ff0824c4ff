// Package values makes of what hits have seen the values of all instructions between them, and
// keeps what the model of memory mispredicts. It is fed, for each thread, with the operations that
// the decoder emits, and with the states that hits sent: it walks along the paths, and at each site
// takes the state of the hit there, which says whether all was right up to it.
//
// What turns out wrong at a hit is taken back: nothing is known of the stretch before it then. So
// a value that is kept was either right at the next hit, or could not be compared there.
//
// Segments that have ended are encoded by groups, beside the recording, and whoever writes it
// meanwhile (see Spill) has its memory back: what a Recorder takes does not grow with what has been
// recorded, but for some hundred bytes for each million instructions.
//
// All threads of a Recorder share its tables and must be fed by the same goroutine.
package values
