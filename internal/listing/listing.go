package listing

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"wpptrace/compress/wpp"
	"wpptrace/internal/original"
	"wpptrace/internal/text"
	"wpptrace/loader/image"
	"wpptrace/query/names"
	"wpptrace/query/profile"
	"wpptrace/query/report"
)

// A Question is what is printed of a snapshot.
type Question struct {
	Of     string // a source file, or a routine
	Binary string // a copy of the file that was recorded; "": it is where it was
	TIDs   []int  // threads; none: all
	JSON   bool
	// Note takes what there is to say of the answer, a line each time.
	Note func(format string, args ...any)
}

func (q *Question) noteCaveats(s *wpp.Snapshot, names ...string) {
	for _, caveat := range report.Caveats(s, names...) {
		q.Note("%s", caveat)
	}
}

// Lines writes how often the lines of a source file ran. It fails where the file cannot be read,
// but not where it is gone.
func Lines(w io.Writer, s *wpp.Snapshot, q *Question) error {
	lines, err := profile.Lines(s, q.Of, q.TIDs...)
	if err != nil {
		return err
	}
	source, changed, err := original.ReadSource(q.Of, lines.File)
	q.noteCaveats(s)
	last := 0
	if n := len(lines.Lines); n > 0 {
		last = lines.Lines[n-1].Line
	}
	switch start := s.Figures.Start; {
	case errors.Is(err, fs.ErrNotExist):
		q.Note("%s is not there, nor %s: only lines with code are printed, without their text: "+
			"--lines names the file where it is", names.Printable(q.Of),
			names.Printable(lines.File))
	case err != nil:
		return fmt.Errorf("lines of %s: %w", names.Printable(q.Of), err)
	case last > len(source.Text):
		q.Note("%s has %s, and code of line %d was recorded: it is another version",
			names.Printable(source.Path), text.Count(len(source.Text), "line"), last)
	case !start.IsZero() && changed.After(start):
		q.Note("%s was changed after the recording began: its lines may be others",
			names.Printable(source.Path))
	}
	if !s.EachLine {
		q.Note("of each block only the first and the last line are known: lines between have no " +
			"COUNT: record again with this wpptrace to know them all")
	}
	if q.JSON {
		return report.WriteLinesJSON(w, s, lines, source)
	}
	return report.WriteLines(w, s, lines, source)
}

// Disasm writes how often the instructions of a routine ran. It fails where the file that has them
// is not there, or another build.
func Disasm(w io.Writer, s *wpp.Snapshot, q *Question) error {
	list, err := profile.Listings(s, q.Of, q.TIDs...)
	q.noteCaveats(s, q.Of)
	if err != nil {
		return err
	}
	codes, images := make([]report.Code, len(list)), map[int]*image.Image{}
	for i := range list {
		k := s.Routines[list[i].Routine].Image
		if images[k] == nil {
			im, path, err := original.OpenBinary(s, k, q.Binary)
			if err != nil {
				return fmt.Errorf("instructions of %s: %w: --binary FILE names a copy of what "+
					"was recorded", names.Printable(q.Of), err)
			}
			defer im.Close()
			if im.BuildID == "" {
				q.Note("neither %s nor what was recorded has a build id: its instructions may be "+
					"others", names.Printable(path))
			}
			images[k] = im
		}
		codes[i] = images[k]
	}
	if q.JSON {
		return report.WriteDisasmJSON(w, s, q.Of, list, codes)
	}
	for i := range list {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := report.WriteDisasm(w, s, &list[i], codes[i]); err != nil {
			return err
		}
	}
	return nil
}
