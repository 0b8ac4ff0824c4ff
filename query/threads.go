package query

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/pathprofile"
	"wpptrace/query/internal/forest"
)

// ErrUnordered says that a path profile was asked for what only a recording has.
var ErrUnordered = errors.New("sequences, contexts, rules and callers need the order of paths, " +
	"which a profile does not have: record it with wpptrace -p")

// Threads returns the threads that have one of the ids, or all when there are no ids. It fails of a
// path profile, with ErrUnordered: what only counts paths does not ask for threads.
func Threads(s *wpp.Snapshot, tids []int) ([]*wpp.Thread, error) {
	if pathprofile.IsProfile(s) {
		return nil, ErrUnordered
	}
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

// forestOf makes the forest of the threads that have one of the ids, or of all, of terminals below
// a number of symbols, for what counts paths alone. Of a path profile it is one in which nothing
// follows anything, so that nothing can be told apart by what came before.
func forestOf(s *wpp.Snapshot, tids []int, symbols int,
	apart *forest.Apart) (f *forest.Forest, threads int, err error) {
	profile, err := pathprofile.Of(s)
	switch {
	case err != nil:
		return nil, 0, err
	case profile != nil && len(tids) > 0:
		return nil, 0, fmt.Errorf("select thread %d: a profile counts all threads together: "+
			"wpptrace profile --tid counts one", tids[0])
	case profile != nil && apart != nil:
		return nil, 0, ErrUnordered
	case profile != nil:
		return forest.NewCounted(profile.Of), int(profile.Threads), nil
	}
	list, err := Threads(s, tids)
	if err != nil {
		return nil, 0, err
	}
	return forest.New(symbols, grammarsOf(list), apart), len(list), nil
}

// allCounted is forestOf all threads.
func allCounted(s *wpp.Snapshot) (f *forest.Forest, threads int, err error) {
	return forestOf(s, nil, len(s.Symbols), nil)
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
