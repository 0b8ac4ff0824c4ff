package main

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/samples"
	"wpptrace/internal/text"
	"wpptrace/loader/image"
	"wpptrace/query"
	"wpptrace/query/names"
	"wpptrace/query/report"
)

// What hot reads besides the snapshot, to print it: source files, programs and libraries. It has no
// capabilities: they are opened as the user.

func (h *hotAsked) printLines(c *cobra.Command, s *wpp.Snapshot) error {
	lines, err := query.Lines(s, h.lines, h.query.TIDs...)
	if err != nil {
		return err
	}
	source, changed, err := readSource(h.lines, lines.File)
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

// mostSource bounds a source file, in bytes.
const mostSource = 64 << 20

// readSource reads a source file by its name, or where there is none by the path that was recorded,
// and when it was changed. The error is fs.ErrNotExist where there is neither.
func readSource(name, recorded string) (source report.Source, changed time.Time, err error) {
	for _, source.Path = range []string{name, recorded} {
		if source.Text, changed, err = readLines(source.Path); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return source, changed, err
}

func readLines(path string) (lines []string, changed time.Time, err error) {
	f, size, err := image.OpenRegular(path)
	if err != nil {
		return nil, changed, err
	}
	defer f.Close()
	if size > mostSource {
		return nil, changed, fmt.Errorf("%s is larger than %d MiB", path, mostSource>>20)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, changed, err
	}
	all, err := io.ReadAll(io.LimitReader(f, mostSource))
	if err != nil {
		return nil, changed, err
	}
	for line := range strings.Lines(string(all)) {
		lines = append(lines, strings.TrimRight(line, "\r\n"))
	}
	return lines, info.ModTime(), nil
}

func (h *hotAsked) printDisasm(c *cobra.Command, s *wpp.Snapshot) error {
	list, err := query.Listings(s, h.disasm, h.query.TIDs...)
	printCaveats(c, s, h.disasm)
	if err != nil {
		return err
	}
	codes, images := make([]report.Code, len(list)), map[int]*image.Image{}
	for i := range list {
		k := s.Routines[list[i].Routine].Image
		if images[k] == nil {
			if images[k], err = h.openBinary(c, s, k); err != nil {
				return fmt.Errorf("instructions of %s: %w", names.Printable(h.disasm), err)
			}
			defer images[k].Close()
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

// openBinary opens the file that an image of a snapshot was: the one that is named, else the first
// of those where it may be that is the same build.
func (h *hotAsked) openBinary(c *cobra.Command, s *wpp.Snapshot, k int) (*image.Image, error) {
	list := []string{h.binary}
	if h.binary == "" {
		list = placesOf(s, k)
	}
	var first error
	for _, path := range list {
		im, err := openBuild(path, &s.Images[k])
		if err != nil {
			first = cmp.Or(first, err)
			continue
		}
		if im.BuildID == "" {
			fmt.Fprintf(c.ErrOrStderr(), "wpptrace: neither %s nor what was recorded has a build "+
				"id: its instructions may be others\n", names.Printable(path))
		}
		return im, nil
	}
	return nil, fmt.Errorf("%w: name a copy of the file that was recorded with --binary FILE", first)
}

// placesOf lists where the file of an image may be: where it was mapped from, as far as that is
// known, and where the command says.
func placesOf(s *wpp.Snapshot, k int) (list []string) {
	if p, err := samples.Of(s); err == nil && p != nil {
		for i := range p.Files {
			if p.Files[i].Image == k {
				list = append(list, p.Files[i].Path)
			}
		}
	}
	if k == 0 && len(s.Figures.Command) > 0 {
		if path, err := exec.LookPath(s.Figures.Command[0]); err == nil {
			list = append(list, path)
		}
	}
	return append(list, s.Images[k].Name)
}

// openBuild opens a file if it has the build id of an image.
func openBuild(path string, recorded *wpp.Image) (*image.Image, error) {
	im, err := image.OpenFile(path)
	if err != nil {
		return nil, err
	}
	if id := hex.EncodeToString(recorded.BuildID); im.BuildID != id {
		im.Close()
		return nil, fmt.Errorf("%s has build id %s, and %s, which was recorded, %s", path,
			orNone(im.BuildID), recorded.Base(), orNone(id))
	}
	return im, nil
}

func orNone(id string) string { return cmp.Or(id, "none") }
