package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"wpptrace/compress/wpp"
	"wpptrace/internal/original"
	"wpptrace/internal/text"
	"wpptrace/loader/image"
	"wpptrace/query/names"
	"wpptrace/query/profile"
	"wpptrace/query/report"
)

// What hot reads besides the snapshot, to print it: source files, programs and libraries. It has no
// capabilities: they are opened as the user.

func (h *hotAsked) printLines(c *cobra.Command, s *wpp.Snapshot) error {
	lines, err := profile.Lines(s, h.lines, h.query.TIDs...)
	if err != nil {
		return err
	}
	source, changed, err := original.ReadSource(h.lines, lines.File)
	printCaveats(c, s)
	note := func(format string, args ...any) {
		fmt.Fprintf(c.ErrOrStderr(), "wpptrace: "+format+"\n", args...)
	}
	last := 0
	if n := len(lines.Lines); n > 0 {
		last = lines.Lines[n-1].Line
	}
	switch start := s.Figures.Start; {
	case errors.Is(err, fs.ErrNotExist):
		note("%s is not there, nor %s: only lines with code are printed, without their text: "+
			"--lines names the file where it is", names.Printable(h.lines),
			names.Printable(lines.File))
	case err != nil:
		return fmt.Errorf("lines of %s: %w", names.Printable(h.lines), err)
	case last > len(source.Text):
		note("%s has %s, and code of line %d was recorded: it is another version",
			names.Printable(source.Path), text.Count(len(source.Text), "line"), last)
	case !start.IsZero() && changed.After(start):
		note("%s was changed after the recording began: its lines may be others",
			names.Printable(source.Path))
	}
	if !s.EachLine {
		note("of each block only the first and the last line are known: lines between have no " +
			"COUNT: record again with this wpptrace to know them all")
	}
	if h.asJSON {
		return report.WriteLinesJSON(c.OutOrStdout(), s, lines, source)
	}
	return report.WriteLines(c.OutOrStdout(), s, lines, source)
}

func (h *hotAsked) printDisasm(c *cobra.Command, s *wpp.Snapshot) error {
	list, err := profile.Listings(s, h.disasm, h.query.TIDs...)
	printCaveats(c, s, h.disasm)
	if err != nil {
		return err
	}
	codes, images := make([]report.Code, len(list)), map[int]*image.Image{}
	for i := range list {
		k := s.Routines[list[i].Routine].Image
		if images[k] == nil {
			im, path, err := original.OpenBinary(s, k, h.binary)
			if err != nil {
				return fmt.Errorf("instructions of %s: %w: name a copy of the file that was "+
					"recorded with --binary FILE", names.Printable(h.disasm), err)
			}
			defer im.Close()
			if im.BuildID == "" {
				fmt.Fprintf(c.ErrOrStderr(), "wpptrace: neither %s nor what was recorded has a "+
					"build id: its instructions may be others\n", names.Printable(path))
			}
			images[k] = im
		}
		codes[i] = images[k]
	}
	if h.asJSON {
		return report.WriteDisasmJSON(c.OutOrStdout(), s, h.disasm, list, codes)
	}
	for i := range list {
		if i > 0 {
			fmt.Fprintln(c.OutOrStdout())
		}
		if err := report.WriteDisasm(c.OutOrStdout(), s, &list[i], codes[i]); err != nil {
			return err
		}
	}
	return nil
}
