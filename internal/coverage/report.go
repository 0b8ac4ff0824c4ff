package coverage

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"

	"wpptrace/compress/wpp/covered"
	"wpptrace/internal/text"
	"wpptrace/loader/privilege"
	"wpptrace/query/names"
	"wpptrace/query/report"
)

// A Report is what is printed of a coverage.
type Report struct {
	SchemaVersion int `json:"schema_version"` // of the object; 2

	Lines    Share         `json:"lines"`    // source lines; of 0: there is no line information
	Routines Share         `json:"routines"` // of all images
	Branches Share         `json:"branches"` // outcomes of conditional jumps
	Blocks   Share         `json:"blocks"`   // basic blocks
	Files    []FileReport  `json:"files"`    // source files, by name
	Images   []ImageReport `json:"images"`   // the executable, then libraries
}

// A Share is how much has run of what was observed.
type Share struct {
	Ran      int `json:"ran"`      // since attaching
	Observed int `json:"observed"` // of which it is known whether it has run
}

// add counts something that was observed.
func (s *Share) add(ran bool) {
	s.Observed++
	if ran {
		s.Ran++
	}
}

func (s Share) plus(t Share) Share { return Share{s.Ran + t.Ran, s.Observed + t.Observed} }

// text is "3 of 12, 25.0%".
func (s Share) text() string {
	if s.Observed == 0 {
		return "-"
	}
	return fmt.Sprintf("%d of %d\t%.1f%%", s.Ran, s.Observed,
		100*float64(s.Ran)/float64(s.Observed))
}

// A FileReport is what has run of a source file.
type FileReport struct {
	Name     string `json:"name"`     // as debug information has it
	Lines    Share  `json:"lines"`    // source lines
	Routines Share  `json:"routines"` // that begin in the file
	Branches Share  `json:"branches"` // outcomes of conditional jumps
	NotRun   []int  `json:"not_run"`  // the numbers of lines that have not run
}

// An ImageReport is what has run of an executable or a library.
type ImageReport struct {
	Name     string          `json:"name"`     // of its file
	Blocks   Share           `json:"blocks"`   // basic blocks
	Unknown  int             `json:"unknown"`  // blocks, or parts of routines, that were not observed
	Routines []RoutineReport `json:"routines"` // by address
}

// A RoutineReport is what has run of a routine.
type RoutineReport struct {
	Routine string `json:"routine"` // its name
	Ran     *bool  `json:"ran"`     // any of its code has; not known where some was not observed
	Blocks  Share  `json:"blocks"`  // basic blocks
}

// NewReport sums up a coverage.
func NewReport(c *covered.Coverage) *Report {
	r := &Report{SchemaVersion: report.SchemaVersion, Files: []FileReport{},
		Images: []ImageReport{}}
	for _, s := range c.Sources() {
		f := fileReport(&s)
		r.Lines, r.Branches = r.Lines.plus(f.Lines), r.Branches.plus(f.Branches)
		r.Files = append(r.Files, f)
	}
	for i := range c.Images {
		m := imageReport(&c.Images[i])
		r.Blocks = r.Blocks.plus(m.Blocks)
		for _, routine := range m.Routines {
			if routine.Ran != nil {
				r.Routines.add(*routine.Ran)
			}
		}
		r.Images = append(r.Images, m)
	}
	return r
}

func fileReport(s *covered.Source) FileReport {
	f := FileReport{Name: s.Name, NotRun: []int{}}
	for _, l := range s.Lines {
		f.Lines.add(l.Ran)
		if !l.Ran {
			f.NotRun = append(f.NotRun, l.Line)
		}
	}
	for _, r := range s.Routines {
		f.Routines.add(r.Ran)
	}
	for _, b := range s.Branches {
		for _, j := range b.Jumps {
			for _, state := range j.Outcomes {
				if state != covered.Unknown {
					f.Branches.add(state == covered.Run)
				}
			}
		}
	}
	return f
}

func imageReport(m *covered.Image) ImageReport {
	r := ImageReport{Name: m.Name, Routines: make([]RoutineReport, len(m.Routines))}
	for i, state := range m.RoutineStates() {
		r.Routines[i].Routine = m.Routines[i].Name
		if state != covered.Unknown {
			ran := state == covered.Run
			r.Routines[i].Ran = &ran
		}
	}
	for i := range m.Blocks {
		b := &m.Blocks[i]
		if b.Ran == covered.Unknown {
			r.Unknown++
			continue
		}
		r.Blocks.add(b.Ran == covered.Run)
		if b.Routine >= 0 {
			r.Routines[b.Routine].Blocks.add(b.Ran == covered.Run)
		}
	}
	return r
}

// WriteTable prints a coverage as a table.
func WriteTable(w io.Writer, c *covered.Coverage) error { return NewReport(c).write(w) }

// WriteJSON prints a coverage as one JSON object, on a line.
func WriteJSON(w io.Writer, c *covered.Coverage) error {
	return json.NewEncoder(w).Encode(NewReport(c))
}

// WriteFile writes a coverage to a file, as the user.
func WriteFile(path string, c *covered.Coverage,
	write func(io.Writer, *covered.Coverage) error) (err error) {
	err = privilege.AsUser(func() error {
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		return errors.Join(write(f, c), f.Close())
	})
	if err != nil {
		return fmt.Errorf("write what has run: %w", err)
	}
	return nil
}

// How much a table lists: of the C library, a command runs code of some 80 files of 1500.
const (
	mostRoutines   = 20 // that have run
	mostFilesUnrun = 20 // else they are counted
)

// write prints the report as a table by source file; where there are no lines, by routine.
func (r *Report) write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if r.Lines.Observed > 0 {
		r.writeFiles(t)
	} else {
		r.writeRoutines(t)
	}
	fmt.Fprintln(t)
	for _, total := range []struct {
		name  string
		share Share
	}{{"lines", r.Lines}, {"routines", r.Routines}, {"branches", r.Branches},
		{"blocks", r.Blocks}} {
		fmt.Fprintf(t, "%s\t%s\n", total.name, pair(total.share))
	}
	return t.Flush()
}

// pair is a share in two columns.
func pair(s Share) string {
	if s.Observed == 0 {
		return "-\t"
	}
	return s.text()
}

// writeFiles prints the source files by name.
func (r *Report) writeFiles(w io.Writer) {
	unrun := 0
	for _, f := range r.Files {
		if f.Lines.Ran == 0 {
			unrun++
		}
	}
	fmt.Fprintln(w, "LINES\t\tROUTINES\t\tBRANCHES\t\tFILE")
	for _, f := range r.Files {
		if f.Lines.Ran > 0 || unrun <= mostFilesUnrun {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", pair(f.Lines), pair(f.Routines), pair(f.Branches),
				names.Printable(f.Name))
		}
	}
	if unrun > mostFilesUnrun {
		fmt.Fprintf(w, "\n%d more files of which no line has run\n", unrun)
	}
}

// writeRoutines prints those routines that have run, the ones first of which most has.
func (r *Report) writeRoutines(w io.Writer) {
	type row struct {
		name   string
		blocks Share
	}
	var rows []row
	for _, m := range r.Images {
		for _, routine := range m.Routines {
			name := routine.Routine
			if len(r.Images) > 1 {
				name = m.Name + ":" + name
			}
			if routine.Blocks.Ran > 0 {
				rows = append(rows, row{name, routine.Blocks})
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int { return b.blocks.Ran - a.blocks.Ran })
	shown := rows[:min(len(rows), mostRoutines)]
	fmt.Fprintf(w, "No debug information with source lines: showing %d of %s that ran\n\n",
		len(shown), text.Count(uint64(len(rows)), "routine"))
	fmt.Fprintln(w, "BLOCKS\t\tROUTINE")
	for _, row := range shown {
		fmt.Fprintf(w, "%s\t%s\n", pair(row.blocks), names.Printable(row.name))
	}
}
