package rules

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"wpptrace/compress/wpp"
	"wpptrace/internal/saturating"
	"wpptrace/query"
	"wpptrace/query/internal/stream"
	"wpptrace/query/names"
)

// A FindQuery asks where a sequence of paths ran.
type FindQuery struct {
	// Pattern is names separated by spaces: ROUTINE for any path of a routine, ROUTINE() for one
	// that enters it, ROUTINE#N for its path N, * for any path, ** for up to Gap of any. A name
	// with spaces or parentheses is put in quotes. Or a pattern with values: see Check.
	Pattern string
	Gap     int    // at most 500
	First   uint64 // list occurrences from this one on, 1 for the first in the threads together
	Top     int    // list so many; 0: none
	TIDs    []int  // threads; nil: all
}

// Validate fails where the query makes no sense, whatever the snapshot.
func (q *FindQuery) Validate() error {
	switch {
	case strings.TrimSpace(q.Pattern) == "":
		return errors.New("find: no path is named")
	case q.Gap < 0 || q.Gap > mostGap:
		return fmt.Errorf("find %s: a gap of %d paths is not between 0 and %d",
			names.Printable(q.Pattern), q.Gap, mostGap)
	case q.Top < 0:
		return fmt.Errorf("find %s: number of occurrences %d is below 0",
			names.Printable(q.Pattern), q.Top)
	case q.First == 0:
		return fmt.Errorf("find %s: occurrence 0: they count from 1", names.Printable(q.Pattern))
	}
	_, err := q.finder(withoutSnapshot())
	if err != nil && hasCalls(q.Pattern) {
		_, err = q.valued()
	}
	if err != nil {
		return fmt.Errorf("find %s: %w", names.Printable(q.Pattern), err)
	}
	return nil
}

// An Occurrence is a stretch of a thread's stream.
type Occurrence struct {
	TID      int
	Position uint64   // of its first symbol, from 0; 2^64-1: so far or farther, and not known
	Length   uint64   // in symbols; 0: not known
	Symbols  []uint32 // of a long one only the beginning; of a pattern with values none
	Match    *Match   // of a pattern with values
}

// A ThreadCount is how often something was found in a thread.
type ThreadCount struct {
	TID   int
	Count uint64
}

// A FindReport is the answer to a FindQuery.
type FindReport struct {
	Query       FindQuery
	Count       uint64 // saturated
	Threads     []ThreadCount
	Occurrences []Occurrence // those listed, by thread, then by their ends
	Valued      *Valued      // of a pattern with values
}

// Find finds all occurrences of a sequence of paths. With ** in it, what matches may be of several
// lengths: each end of a match is one occurrence, of the shortest that ends there. No occurrence
// holds or crosses a mark.
//
// It takes time in proportion to the right-hand sides, times the states of an automaton that their
// rules are met in: one for most names, up to 2^Gap for patterns with several **. Memory is
// bounded; Find fails where that does not suffice. An occurrence that is listed takes time in
// proportion to the bodies on the way down to it, but for the start rule's.
func Find(s *wpp.Snapshot, q FindQuery) (report *FindReport, err error) {
	defer wpp.Recover(&err)
	fail := func(err error) (*FindReport, error) {
		return nil, fmt.Errorf("find %s: %w", names.Printable(q.Pattern), err)
	}
	if err := q.Validate(); err != nil {
		return nil, err
	}
	threads, err := query.Threads(s, q.TIDs)
	if err != nil {
		return nil, err
	}
	if hasCalls(q.Pattern) && !names.Of(s).IsName(q.Pattern) {
		if report, err = q.findValued(s, threads); err != nil {
			return fail(err)
		}
		return report, nil
	}
	finder, err := q.finder(newPathNames(s))
	if err != nil {
		return fail(err)
	}
	report = &FindReport{Query: q}
	skip := q.First - 1
	for _, t := range threads {
		count, found, err := finder.find(t, skip, q.Top-len(report.Occurrences))
		if err != nil {
			return fail(err)
		}
		skip -= min(skip, count)
		report.Count = saturating.Add(report.Count, count)
		report.Threads = append(report.Threads, ThreadCount{t.TID, count})
		report.Occurrences = append(report.Occurrences, found...)
	}
	return report, nil
}

const mostGap = 500

// A finder finds the stretches that match a pattern.
type finder struct {
	ends   *automaton // hits where a match ends
	begins *automaton // read backward from an end, hits where a match begins
}

func (q *FindQuery) finder(a *pathNames) (*finder, error) {
	p, err := sequencePattern(a, q.Pattern, q.Gap)
	if err != nil {
		return nil, err
	}
	return newFinder(a, p)
}

func newFinder(a *pathNames, p *pattern) (*finder, error) {
	forward, err := newPositions(p)
	if err != nil {
		return nil, err
	}
	if forward.last.has(0) {
		return nil, fmt.Errorf("it matches where nothing ran")
	}
	backward, err := newPositions(p.reversed())
	if err != nil {
		return nil, err
	}
	return &finder{newSubsets(a, forward, anywhere), newSubsets(a, backward, here)}, nil
}

// find counts the matches in a thread, and returns limit of them behind the first skip.
func (x *finder) find(t *wpp.Thread, skip uint64,
	limit int) (count uint64, found []Occurrence, err error) {
	ends := newSweep(t.Grammar, x.ends, false)
	if count, _, err = ends.whole(); err != nil || limit <= 0 || count <= skip {
		return count, nil, err
	}
	hits, err := ends.hits(0, skip, limit)
	if err != nil {
		return count, nil, err
	}
	begins, cursor := newSweep(t.Grammar, x.begins, true), stream.New(t.Grammar)
	for _, h := range hits {
		o, err := stretch(t, begins, cursor, h.distance)
		if err != nil {
			return count, nil, err
		}
		found = append(found, o)
	}
	return count, found, nil
}

// mostContext bounds the symbols of an occurrence that a report lists.
const mostContext = 16

// stretch is the shortest match that ends at a position; one of length 0 at the greatest position
// where that is not known any more.
func stretch(t *wpp.Thread, begins *sweep, cursor *stream.Cursor, end uint64) (Occurrence, error) {
	beyond := Occurrence{TID: t.TID, Position: math.MaxUint64}
	if end >= math.MaxUint64-1 {
		return beyond, nil
	}
	hits, err := begins.hits(end, 0, 1)
	if err != nil || len(hits) == 0 {
		return beyond, err
	}
	length := hits[0].distance + 1
	return occurrence(t, cursor, end+1-length, length), nil
}

func occurrence(t *wpp.Thread, cursor *stream.Cursor, position, length uint64) Occurrence {
	o := Occurrence{TID: t.TID, Position: position, Length: length}
	cursor.Seek(position)
	for range min(length, mostContext) {
		if sym, ok := cursor.Next(); ok {
			o.Symbols = append(o.Symbols, sym)
		}
	}
	return o
}
