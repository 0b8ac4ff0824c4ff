// Package wire is the vocabulary of the ring buffer: the 8-byte events that the BPF program sends
// (bpf/types.h) and the batches that carry them, in pure Go. A batch belongs to one thread; its
// events are in the order in which they happened. Nothing here judges whether an event makes sense:
// that is the decoder's business.
package wire
