package main

import (
	"fmt"
	"slices"
	"strings"

	"wpptrace/compress/wpp"
	"wpptrace/query"
)

// topFound says how many of the ten hottest subpaths of a full trace another recording of the same
// process has among its twenty hottest: one of these is that, or begins like it as far as the
// shorter of the two goes, or has all of it but for some at its ends, for where one begins and ends
// depends on what counts as hot.
func topFound(full, other *wpp.Snapshot) (found, of int, err error) {
	const many = 10
	q := query.DefaultHotQuery()
	q.Top = 2 * many
	theirs, err := hotSubpaths(other, q)
	if err != nil {
		return 0, 0, err
	}
	q.Top = many
	top, err := hotSubpaths(full, q)
	if err != nil {
		return 0, 0, err
	}
	for _, a := range top {
		if slices.ContainsFunc(theirs, func(b string) bool { return isMostly(a, b) }) {
			found++
		}
	}
	return found, len(top), nil
}

// isMostly reports whether one of two subpaths begins like the other, or is most of it.
func isMostly(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	long := func(s string) int { return strings.Count(s, ";") }
	return strings.HasPrefix(b, a) || strings.Contains(";"+b, ";"+a) && 3*long(a) > 2*long(b)
}

// hotSubpaths are a snapshot's, as texts that are the same in another snapshot.
func hotSubpaths(s *wpp.Snapshot, q query.HotQuery) (list []string, err error) {
	report, err := query.Hot(s, q)
	if err != nil {
		return nil, err
	}
	for _, x := range report.Subpaths {
		var b strings.Builder
		for _, symbol := range x.Symbols {
			r := s.RoutineOf(symbol)
			fmt.Fprintf(&b, "%s %x#%d;", s.Images[r.Image].Name, r.Entry, s.Symbols[symbol].Path)
		}
		list = append(list, b.String())
	}
	return list, nil
}
