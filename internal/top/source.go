package top

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"wpptrace/compress/wpp"
	"wpptrace/internal/original"
	"wpptrace/loader/image"
	"wpptrace/query/names"
	"wpptrace/query/report"
)

// sources are the files that what is shown was recorded of, each read once. What could not be read
// is remembered, too.
type sources struct {
	texts  map[string]source // by recorded paths
	images map[int]code      // by their indices in snapshots, which stay the same in a recording
}

// A source is a source file.
type source struct {
	text    []string
	changed time.Time
	err     error
}

// A code is a program, or a library.
type code struct {
	image *image.Image
	err   error
}

func newSources() *sources {
	return &sources{map[string]source{}, map[int]code{}}
}

func (x *sources) text(path string) source {
	s, known := x.texts[path]
	if !known {
		from, changed, err := original.ReadSource(path, path)
		s = source{from.Text, changed, err}
		x.texts[path] = s
	}
	return s
}

func (x *sources) code(s *wpp.Snapshot, k int) code {
	c, known := x.images[k]
	if !known {
		c.image, _, c.err = original.OpenBinary(s, k, "")
		x.images[k] = c
	}
	return c
}

// rows are the source of paths that run one after the other: of each, where it is, and the lines
// that run, or its instructions where these are not known.
func (x *sources) rows(s *wpp.Snapshot, labels *report.Labels, symbols []uint32) (list []row) {
	paths := make([]*report.Label, len(symbols))
	for i, sym := range symbols {
		paths[i] = labels.Of(sym)
	}
	for _, step := range stepsOf(paths) {
		list = append(list, row{step.name(widestName) + "  " + step.label.Where(), bold})
		if step.label.File == "" {
			list = append(list, x.instructions(s, step.label.Symbol)...)
		} else {
			list = append(list, x.lines(s, step.label.Symbol, step.label.File)...)
		}
	}
	return list
}

// widestName is how wide the name of a path is at most above its source.
const widestName = 50

func (x *sources) instructions(s *wpp.Snapshot, sym uint32) (list []row) {
	c := x.code(s, s.Routines[s.Symbols[sym].Routine].Image)
	if c.err != nil {
		return []row{{names.Printable(c.err.Error()), faint}}
	}
	for _, text := range report.PathInstructions(s, sym, c.image) {
		list = append(list, row{"  " + text, plain})
	}
	return list
}

// lines are the lines of a file that a path runs, marked, and few others between them. Where the
// file cannot be read, its instructions say more than the numbers of lines.
func (x *sources) lines(s *wpp.Snapshot, sym uint32, file string) (list []row) {
	from := x.text(file)
	switch {
	case from.err != nil:
		list = append(list, row{names.Printable(from.err.Error()), faint})
		if x.code(s, s.Routines[s.Symbols[sym].Routine].Image).err == nil {
			return append(list, x.instructions(s, sym)...)
		}
	case !s.Figures.Start.IsZero() && from.changed.After(s.Figures.Start):
		list = append(list, row{"it was changed after the recording began: its lines may be " +
			"others", faint})
	}
	return append(list, from.lines(linesOf(s, sym, file))...)
}

// mostBetween is how many lines that do not run are shown between two that do.
const mostBetween = 2

// lines are rows of lines that run, which rise.
func (x *source) lines(ran []int) (list []row) {
	show := func(n int, mark string, s style) {
		text := ""
		if n <= len(x.text) {
			text = names.Printable(strings.ReplaceAll(x.text[n-1], "\t", "    "))
		}
		list = append(list, row{fmt.Sprintf("%s %5s  %s", mark, strconv.Itoa(n), text), s})
	}
	for i, n := range ran {
		if i > 0 {
			if between := n - ran[i-1] - 1; between > mostBetween {
				list = append(list, row{"    " + names.Ellipsis, faint})
			} else {
				for k := ran[i-1] + 1; k < n; k++ {
					show(k, " ", faint)
				}
			}
		}
		show(n, ">", plain)
	}
	return list
}

// linesOf are the lines of a file that a path runs, in the routine that has the code: where a call
// was inlined, that of the call.
func linesOf(s *wpp.Snapshot, sym uint32, file string) []int {
	const most = 1000 // of a block of an old recording, the lines between are not known
	ran := map[int]bool{}
	for piece := range s.Pieces(sym) {
		for span := range piece.Spans() {
			at := report.OwnPlace(s, span)
			if at.Line == 0 || s.Files[at.File] != file {
				continue
			}
			for n := at.Line; n <= min(max(at.Line, at.Last), at.Line+most); n++ {
				ran[n] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(ran))
}
