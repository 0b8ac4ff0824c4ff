package recovery

import "iter"

// links are numbered links, by what they lead to.
type links struct{ first, next []int32 } // by target, by link; from 1, and 0 for none

const nowhere = -1 // where a link leads that is left out

// newLinks lists n links to targets, of which there are so many. In memory it takes 4 bytes for
// each link and each target.
func newLinks(targets, n int, to func(link int) int) links {
	l := links{make([]int32, targets), make([]int32, n)}
	for i := n - 1; i >= 0; i-- {
		if at := to(i); at != nowhere {
			l.next[i], l.first[at] = l.first[at], int32(i)+1
		}
	}
	return l
}

// of are the links to a target, in their order.
func (l links) of(target int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := l.first[target]; i != 0 && yield(int(i)-1); i = l.next[i-1] {
		}
	}
}
