package profile

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"wpptrace/compress/wpp"
	"wpptrace/internal/saturating"
	"wpptrace/query"
	"wpptrace/query/names"
)

// A LineCount is how often a source line ran that has code.
type LineCount struct {
	Line  int
	Count uint64
}

// A LinesReport says how often the lines of a source file ran.
type LinesReport struct {
	File    string      // as debug information has it
	Threads int         // that were looked at
	Lines   []LineCount // by rising line
}

// Lines counts how often each line of a source file ran, in the threads with these ids, or in all.
// A line may have several instructions, in several blocks: its count is that of the one that ran
// most often. Where its code is in several routines, or is inlined by several calls, this is so for
// each of these copies, and their counts are added up. So of code that is not optimized it is how
// often the line ran; an optimizing compiler moves code, merges that of several lines, and writes
// the condition of a loop twice.
//
// Lines without code are not in the report, nor are those of routines that did not run. Where the
// snapshot does not have EachLine, a line has a count if it is the first or last one of a block.
//
// The file is one that SourceFile finds. It takes time in proportion to the grammars and to the
// instructions of all paths of the alphabet.
func Lines(s *wpp.Snapshot, file string, tids ...int) (r *LinesReport, err error) {
	defer wpp.Recover(&err)
	found, err := SourceFile(s, file)
	if err != nil {
		return nil, fmt.Errorf("lines of %s: %w", names.Printable(file), err)
	}
	is := make([]bool, len(s.Files))
	for i, name := range s.Files {
		is[i] = path.Clean(name) == found
	}
	paths, err := query.NewFrequencies(s, tids...)
	if err != nil {
		return nil, err
	}
	total := map[int]uint64{}
	for routine, counts := range countInstructions(s, paths) {
		for at, n := range linesOf(s, routine, counts, is) {
			total[at.line] = saturating.Add(total[at.line], n)
		}
	}
	r = &LinesReport{File: found, Threads: paths.Threads}
	for line, n := range total {
		r.Lines = append(r.Lines, LineCount{line, n})
	}
	slices.SortFunc(r.Lines, func(a, b LineCount) int { return a.Line - b.Line })
	return r, nil
}

// A lineCopy is the code of a line that is of one inlined call, or of the routine itself.
type lineCopy struct{ line, call int }

// linesOf is how often the lines of some files ran in the code of a routine.
func linesOf(s *wpp.Snapshot, routine int, counts [][]uint64, is []bool) map[lineCopy]uint64 {
	most := map[lineCopy]uint64{}
	blocks := s.Routines[routine].Blocks
	for b := range blocks {
		block := &blocks[b]
		for span := range (wpp.Piece{Block: block, To: len(block.Lengths)}).Lines() {
			if span.Line == 0 || !is[span.File] {
				continue
			}
			for at := span.From; at < span.To; at++ {
				if line := lineOf(s, span, at); line > 0 {
					c := lineCopy{line, span.Call}
					most[c] = max(most[c], counts[b][at])
				}
			}
		}
	}
	return most
}

// SourceFile finds a source file of the snapshot by a name that somebody may give it: the one whose
// path agrees with the name in most parts, from the base name on, which must agree. It returns the
// path that debug information has, cleaned. It fails where there is no such file, or several.
func SourceFile(s *wpp.Snapshot, name string) (string, error) {
	if len(s.Files) == 0 {
		return "", errors.New("the snapshot has no source lines: build the program with -g, or " +
			"install its debug information, and record again")
	}
	var found, known []string
	most := 1
	for _, file := range s.Files {
		file = path.Clean(file)
		known = append(known, names.Printable(path.Base(file)))
		switch n := commonEnd(file, path.Clean(name)); {
		case slices.Contains(found, file) || n < most:
		case n == most:
			found = append(found, file)
		default:
			most, found = n, []string{file}
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		slices.Sort(known)
		known = slices.Compact(known)
		const few = 3
		if similar := names.Similar(path.Base(name), known, few); len(similar) > 0 {
			known = similar
		}
		return "", fmt.Errorf("no code of it ran, but of %s", names.List(known))
	}
	slices.Sort(found)
	for i := range found {
		found[i] = names.Printable(found[i])
	}
	return "", fmt.Errorf("it may be one of %s: give more of its path", names.List(found))
}

// commonEnd is how many parts the ends of two paths have in common.
func commonEnd(a, b string) (parts int) {
	x, y := strings.Split(a, "/"), strings.Split(b, "/")
	for parts < min(len(x), len(y)) && x[len(x)-1-parts] == y[len(y)-1-parts] {
		parts++
	}
	return parts
}
