package values

import (
	"fmt"
	"iter"

	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wpp"
)

// A WatchQuery asks for the accesses to some bytes of memory.
type WatchQuery struct {
	Addr       uint64
	Size       int // in bytes
	WritesOnly bool
	TID        int // of the thread; 0: all
}

// A Watched is an access to bytes that are watched.
type Watched struct {
	TID      int
	Executed *wet.Executed
	Access   *machine.Access
}

// Watch yields the accesses to some bytes, one thread after the other, each in order. What it
// yields is good until the next; an error is the last. lost counts the accesses of which it is not
// known where they were; it is right once all were yielded. It fails with ErrNone where there are
// no values, and panics as Instructions does.
func Watch(s *wpp.Snapshot, q WatchQuery, lost *int) iter.Seq2[Watched, error] {
	return func(yield func(Watched, error) bool) {
		found := false
		for i := range s.Threads {
			tid := s.Threads[i].TID
			if q.TID != 0 && tid != q.TID {
				continue
			}
			found = true
			for e, err := range Instructions(s, i) {
				if err != nil {
					yield(Watched{}, err)
					return
				}
				for j := range e.Accesses {
					a := &e.Accesses[j]
					switch {
					case q.WritesOnly && !a.Write:
					case a.At == machine.Unknown:
						*lost++
					case a.Addr < q.Addr+uint64(q.Size) && q.Addr < a.Addr+uint64(max(a.Size, 1)):
						if !yield(Watched{tid, e, a}, nil) {
							return
						}
					}
				}
			}
		}
		if !found {
			yield(Watched{}, fmt.Errorf("watch: the snapshot has no thread %d", q.TID))
		}
	}
}
