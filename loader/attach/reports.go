package attach

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"

	"wpptrace/bpf/wire"
)

// reports is what the BPF program has sent and nobody has read yet: batches in the ring buffer, and
// in a second one those that threads had left at their end where the first had no room.
type reports struct {
	ring     *ringbuf.Reader // nil: not open
	overflow *ringbuf.Reader
	record   ringbuf.Record
	read     Position // what next has returned
	// of overflow, which is read next when what came before it in the ring buffer has been
	due Position
}

// A Position is a place in what has been reported, which comes in two buffers: bytes of each.
type Position struct{ ring, overflow uint64 }

func (r *reports) open(ring, overflow *ebpf.Map) (err error) {
	if r.ring, err = ringbuf.NewReader(ring); err != nil {
		return fmt.Errorf("open the ring buffer: %w", err)
	}
	if r.overflow, err = ringbuf.NewReader(overflow); err != nil {
		return fmt.Errorf("open the ring buffer of what has no room in it: %w", err)
	}
	return nil
}

func (r *reports) isOpen() bool { return r.ring != nil }

// next returns the next batch, whose memory is good until the next call, or
// os.ErrDeadlineExceeded. It calls drained when it finds the ring buffer empty.
func (r *reports) next(deadline time.Time, drained func() error) (wire.Batch, error) {
	if r.read.overflow >= r.due.overflow {
		r.due = r.end()
	}
	if r.read.overflow < r.due.overflow && r.read.ring >= r.due.ring {
		return r.nextOf(r.overflow, &r.read.overflow, time.Now())
	}
	if r.ring.AvailableBytes() == 0 {
		if err := drained(); err != nil {
			return wire.Batch{}, err
		}
	}
	return r.nextOf(r.ring, &r.read.ring, deadline)
}

// nextOf returns the next batch of a buffer, and counts its bytes.
func (r *reports) nextOf(buffer *ringbuf.Reader, read *uint64,
	deadline time.Time) (wire.Batch, error) {
	const header = 8 // of a record
	buffer.SetDeadline(deadline)
	if err := buffer.ReadInto(&r.record); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return wire.Batch{}, os.ErrDeadlineExceeded
		}
		return wire.Batch{}, fmt.Errorf("read the ring buffer: %w", err)
	}
	*read += header + uint64(len(r.record.RawSample))
	return wire.ParseBatch(r.record.RawSample)
}

// end is the end of what has been reported by now.
func (r *reports) end() Position {
	overflow := r.read.overflow + uint64(r.overflow.AvailableBytes()) // asked first
	return Position{ring: r.read.ring + uint64(r.ring.AvailableBytes()), overflow: overflow}
}

// has reports whether next has returned all up to there.
func (r *reports) has(p Position) bool {
	return r.read.ring >= p.ring && r.read.overflow >= p.overflow
}

// fill is the share of the ring buffer that waits to be read, 0 to 1.
func (r *reports) fill() float64 {
	return float64(r.ring.AvailableBytes()) / float64(r.ring.BufferSize())
}

func (r *reports) close() {
	if r.ring != nil {
		r.ring.Close()
	}
	if r.overflow != nil {
		r.overflow.Close()
	}
	*r = reports{}
}
