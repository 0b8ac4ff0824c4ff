// Package decoder turns the words of the ring buffer back into what ran: it walks each activation
// along the only silent way from one witness to the next, as a decoder of a hardware trace walks
// the binary, and emits the operations of Larus 1999, section 2. The rules of silence that it
// relies on are listed in package plan.
//
// Nothing moves without evidence, so what is emitted happened, in that order. What cannot be known
// is marked: gap, resume, cut, unwind. A Thread is fed by one goroutine at a time; all threads of a
// Decoder share its tables and must be fed by the same goroutine.
package decoder
