package format

import (
	"fmt"
	"math"

	"wpptrace/compress/wpp"
	"wpptrace/internal/text"
)

// A salvageError says of a file that is cut off what of it was read.
type salvageError struct {
	err               error // where it is cut off
	threads, segments int
	symbols           uint64
}

func (e *salvageError) Error() string {
	of := text.Count(e.threads, "thread")
	if e.segments > 0 {
		of += ", with " + text.Count(e.segments, "segment")
	}
	return fmt.Sprintf("%v: read was what is whole, %d paths and marks of %s: what ran after "+
		"them is missing; copy it again from where it was recorded, if it is whole there",
		e.err, e.symbols, of)
}

func (e *salvageError) Unwrap() error { return e.err }

// salvaged returns a snapshot of the threads that are whole, and of the whole segments of the
// others; none, with the error alone, where there are none.
func (f *fileReader) salvaged(err error) (*wpp.Snapshot, error) {
	f.checkSections()
	left := make(map[uint32][]*storedSegment) // by thread
	var threads []uint32
	whole := 0
	for _, x := range f.segments {
		if x == nil {
			whole++
			continue
		}
		x.terminals = len(f.s.Symbols)
		if _, loadErr := x.Load(math.MaxUint64); loadErr != nil {
			break // a system that went down has written the end of a file before the middle
		}
		n := x.about.Thread
		if left[n] == nil {
			threads = append(threads, n)
		}
		left[n] = append(left[n], x)
		whole++
	}
	for _, n := range threads {
		var list []*wpp.Segment
		for _, x := range left[n] {
			list = append(list, x.segment())
		}
		if about := left[n][0].about; wpp.CheckJoin(list) == nil {
			t := wpp.Thread{TID: int(about.Tid), Name: string(about.Name), Grammar: wpp.Join(list)}
			f.s.Threads = append(f.s.Threads, t)
		}
	}
	if len(f.s.Threads) == 0 {
		return nil, err
	}
	s, checkErr := f.snapshot()
	if checkErr != nil {
		return nil, err
	}
	e := &salvageError{err: err, threads: len(s.Threads), segments: whole}
	for i := range s.Threads {
		n := s.Threads[i].Grammar.Length(0)
		e.symbols += min(n, math.MaxUint64-e.symbols)
	}
	return s, e
}
