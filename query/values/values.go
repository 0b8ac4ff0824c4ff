package values

import (
	"errors"
	"fmt"
	"iter"
	"math"

	"wpptrace/compress/wet"
	"wpptrace/compress/wpp"
)

// Instructions are the executed instructions of a thread, an index in s.Threads, in their order,
// with what they computed. An error is the last of the sequence. What it yields is good until the
// next. It fails with ErrNone where there are no values, and panics where a segment of paths cannot
// be read any more: see wpp.Recover. It takes some 100 ns an instruction, and the memory that the
// thread has touched.
func Instructions(s *wpp.Snapshot, thread int) iter.Seq2[*wet.Executed, error] {
	return func(yield func(*wet.Executed, error) bool) {
		if !Has(s) {
			yield(nil, ErrNone)
			return
		}
		segments, err := wet.Segments(s, thread)
		if err != nil {
			yield(nil, err)
			return
		}
		each := observer(func(e *wet.Executed) error {
			if !yield(e, nil) {
				return errEnough
			}
			return nil
		})
		for i := range segments {
			switch err := segments[i].Replay(0, math.MaxUint64, each); {
			case errors.Is(err, errEnough):
				return
			case err != nil:
				yield(nil, fmt.Errorf("replay thread %d: %w", s.Threads[thread].TID, err))
				return
			}
		}
	}
}

var errEnough = errors.New("enough")

type observer func(*wet.Executed) error

func (o observer) Executed(e *wet.Executed) error { return o(e) }
