package values

import (
	"slices"

	"wpptrace/compress/wet"
	"wpptrace/compress/wpp"
)

// A segment is one that has ended. It is encoded meanwhile, which takes longer than what is
// recorded may wait.
type segment struct {
	done     chan struct{}
	sections []*wpp.Section // once that is closed
	size     uint64         // the same: bytes of the sections
	before   uint64         // bytes that it takes until then
}

// mostWaiting is how many bytes of segments wait to be encoded at most. Where there are more, what
// is recorded waits, too.
const mostWaiting = 64 << 20

// encode has a log of a thread encoded, each behind those before it.
func (r *Recorder) encode(l *wet.Log, t *Thread) {
	s := &segment{done: make(chan struct{}), before: l.Bytes()}
	waiting := s.before
	for i := len(r.ended) - 1; i >= 0 && !r.ended[i].isDone(); i-- {
		if waiting += r.ended[i].before; waiting > mostWaiting {
			r.ended[i].wait()
			break
		}
	}
	t.ended, r.ended = append(t.ended, s), append(r.ended, s)
	r.segments++
	go func() {
		r.coding <- struct{}{}
		data := l.Encode()
		s.sections, s.size = data.Sections(t.number), uint64(data.Size())
		<-r.coding
		close(s.done)
	}()
}

// wait returns the segment as files have it.
func (s *segment) wait() []*wpp.Section {
	<-s.done
	return s.sections
}

func (s *segment) isDone() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// bytes is how much memory it takes now.
func (s *segment) bytes() uint64 {
	if s.isDone() {
		return s.size
	}
	return s.before
}

// Spill returns the sections of the segments that have ended since it was called last, as far as
// they are encoded. They are some of what Sections returns: where they are written, they need not
// stay in memory.
func (r *Recorder) Spill() (list []*wpp.Section) {
	n := 0
	for ; n < len(r.ended) && r.ended[n].isDone(); n++ {
		list = append(list, r.ended[n].sections...)
	}
	r.ended = slices.Delete(r.ended, 0, n)
	return list
}
