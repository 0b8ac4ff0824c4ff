package values

import "wpptrace/compress/wet"

// A segment is one that has ended. It is encoded meanwhile, which takes longer than what is
// recorded may wait.
type segment struct {
	done   chan struct{}
	data   wet.Encoded // once that is closed
	before uint64      // bytes that it takes until then
}

// encode has a log encoded, one at a time.
func (r *Recorder) encode(l *wet.Log) *segment {
	s := &segment{done: make(chan struct{}), before: l.Bytes()}
	go func() {
		r.coding <- struct{}{}
		s.data = l.Encode()
		<-r.coding
		close(s.done)
	}()
	return s
}

// wait returns the segment as files have it.
func (s *segment) wait() *wet.Encoded {
	<-s.done
	return &s.data
}

// bytes is how much memory it takes now.
func (s *segment) bytes() uint64 {
	select {
	case <-s.done:
		return uint64(s.data.Size())
	default:
		return s.before
	}
}
