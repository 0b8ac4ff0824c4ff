package attach

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"wpptrace/bpf"
)

// threads are the links by which the BPF program follows the life of the process's threads, and the
// iterator that has those hand over what they have not sent.
type threads struct {
	objects *bpf.TracerObjects
	links   []link.Link
	drain   *link.Iter
}

// follow makes the links.
func (t *threads) follow(programs ...*ebpf.Program) error {
	for _, p := range programs {
		l, err := link.AttachTracing(link.TracingOptions{Program: p})
		if err != nil {
			return fmt.Errorf("follow the life of its threads: %w", err)
		}
		t.links = append(t.links, l)
	}
	var err error
	if t.drain, err = link.AttachIter(link.IterOptions{Program: t.objects.Drain}); err != nil {
		return fmt.Errorf("prepare to drain its threads: %w", err)
	}
	return nil
}

// flush has the threads that still live hand over what they have not sent. Those that come to their
// end meanwhile are waited for, until ctx is done.
func (t *threads) flush(ctx context.Context) error {
	for {
		unsent, err := t.flushOnce()
		if err != nil || unsent == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d have not finished: %w", unsent, ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
}

// flushOnce returns how many threads were at that themselves, because they come to their end: it
// may not be in the ring buffer yet.
func (t *threads) flushOnce() (unsent uint32, err error) {
	if err := t.objects.Unsent.Set(uint32(0)); err != nil {
		return 0, err
	}
	r, err := t.drain.Open()
	if err != nil {
		return 0, err
	}
	defer r.Close()
	if _, err := io.Copy(io.Discard, r); err != nil {
		return 0, err
	}
	err = t.objects.Unsent.Get(&unsent)
	return unsent, err
}

// close takes off the links.
func (t *threads) close() {
	for _, l := range t.links {
		l.Close()
	}
	if t.drain != nil {
		t.drain.Close()
	}
	t.links, t.drain = nil, nil
}
