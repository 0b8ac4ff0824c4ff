package query

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"wpptrace/compress/wpp"
	"wpptrace/query/internal/forest"
)

// Threads returns the threads that have one of the ids, or all when there are no ids.
func Threads(s *wpp.Snapshot, tids []int) ([]*wpp.Thread, error) {
	var threads []*wpp.Thread
	found := make(map[int]bool)
	for i := range s.Threads {
		t := &s.Threads[i]
		if len(tids) == 0 || slices.Contains(tids, t.TID) {
			threads = append(threads, t)
			found[t.TID] = true
		}
	}
	for _, tid := range tids {
		if !found[tid] {
			return nil, fmt.Errorf("select thread %d: the snapshot has %s", tid, threadList(s))
		}
	}
	return threads, nil
}

// allThreads are those of a snapshot.
func allThreads(s *wpp.Snapshot) []*wpp.Thread {
	threads, _ := Threads(s, nil) // which fails for a thread that is asked for alone
	return threads
}

func threadList(s *wpp.Snapshot) string {
	const most = 8
	var ids []string
	for i := range s.Threads[:min(most, len(s.Threads))] {
		ids = append(ids, strconv.Itoa(s.Threads[i].TID))
	}
	switch {
	case len(ids) == 0:
		return "no threads"
	case len(s.Threads) > most:
		return fmt.Sprintf("%d threads: %s ...", len(s.Threads), strings.Join(ids, " "))
	default:
		return "threads " + strings.Join(ids, " ")
	}
}

// newForest makes the forest of threads of a snapshot.
func newForest(s *wpp.Snapshot, threads []*wpp.Thread) *forest.Forest {
	return forest.New(len(s.Symbols), grammarsOf(threads), nil)
}

func grammarsOf(threads []*wpp.Thread) (grammars []*wpp.Grammar) {
	for _, t := range threads {
		grammars = append(grammars, t.Grammar)
	}
	return grammars
}
