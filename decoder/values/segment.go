package values

import (
	"slices"

	"wpptrace/compress/wet"
	"wpptrace/compress/wpp"
)

// A group is segments of a thread that have ended, and are encoded together, which takes longer
// than what is recorded may wait.
type group struct {
	done     chan struct{}
	sections []*wpp.Section // once that is closed
	size     uint64         // the same: bytes of the sections
	before   uint64         // bytes that it takes until then
}

const (
	// mostWaiting is how many bytes of groups wait to be encoded at most. Where there are more,
	// what is recorded waits, too.
	mostWaiting = 192 << 20
	// mostOpen is how many bytes of segments wait for others of their groups, of all threads.
	mostOpen = 128 << 20
)

// end has a log of a thread be of its group, which is encoded once it is full, or takes most of
// what groups may take.
func (r *Recorder) end(l *wet.Log, t *Thread) {
	t.group, t.open = append(t.group, l), t.open+l.Bytes()
	r.open += l.Bytes()
	r.segments++
	if len(t.group) == wet.MostInGroup {
		r.encode(t)
	}
	for r.open > mostOpen {
		most := t
		for _, other := range r.threads {
			if other.open > most.open {
				most = other
			}
		}
		r.encode(most)
	}
}

// encode has the group of a thread encoded, each behind those before it.
func (r *Recorder) encode(t *Thread) {
	logs, g := t.group, &group{done: make(chan struct{}), before: t.open}
	waiting := g.before
	for i := len(r.ended) - 1; i >= 0 && !r.ended[i].isDone(); i-- {
		if waiting += r.ended[i].before; waiting > mostWaiting {
			r.ended[i].wait()
			break
		}
	}
	t.ended, r.ended = append(t.ended, g), append(r.ended, g)
	r.open -= t.open
	t.group, t.open = nil, 0
	go func() {
		r.coding <- struct{}{}
		data := wet.Encode(logs)
		g.sections, g.size = data.Sections(t.number), uint64(data.Size())
		<-r.coding
		close(g.done)
	}()
}

// wait returns the group as files have it.
func (g *group) wait() []*wpp.Section {
	<-g.done
	return g.sections
}

func (g *group) isDone() bool {
	select {
	case <-g.done:
		return true
	default:
		return false
	}
}

// bytes is how much memory it takes now.
func (g *group) bytes() uint64 {
	if g.isDone() {
		return g.size
	}
	return g.before
}

// Spill returns the sections of the groups of segments that are full since it was called last, as
// far as they are encoded. They are some of what Sections returns: where they are written, they
// need not stay in memory.
func (r *Recorder) Spill() (list []*wpp.Section) {
	n := 0
	for ; n < len(r.ended) && r.ended[n].isDone(); n++ {
		list = append(list, r.ended[n].sections...)
	}
	r.ended = slices.Delete(r.ended, 0, n)
	return list
}
