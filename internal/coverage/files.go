package coverage

import (
	"fmt"
	"os"
	"time"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/covered"
	"wpptrace/compress/wpp/store"
	"wpptrace/internal/remedy"
	"wpptrace/loader/privilege"
	"wpptrace/query"
)

// ReadFiles reads the coverages that some snapshots hold, and merges them.
func ReadFiles(paths []string) (*covered.Coverage, error) {
	all := &covered.Coverage{}
	for i, path := range paths {
		c, err := readFile(path)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			all = c
		} else if err := all.Merge(c); err != nil {
			return nil, fmt.Errorf("merge %s with %s: %w", path, paths[0], err)
		}
	}
	return all, nil
}

func readFile(path string) (c *covered.Coverage, err error) {
	var s *wpp.Snapshot
	err = privilege.AsUser(func() (err error) {
		// the others are known, too, so that it can be said that they are none
		s, err = store.ReadFile(path, append(query.Sections(), covered.Kind)...)
		return err
	})
	if err != nil {
		return nil, err
	}
	if c, err = covered.Of(s); err == nil && c == nil {
		err = remedy.Errorf(remedy.OwnCoverage, "it does not say what has run")
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return c, nil
}

// OpenLog opens a file, as the user, to append to it. The caller closes it.
func OpenLog(path string) (f *os.File, err error) {
	err = privilege.AsUser(func() (err error) {
		const mode = 0o644
		f, err = os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, mode)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("write events: %w: name another file with --log", err)
	}
	return f, nil
}

// An Origin is what a snapshot says of how a coverage came about.
type Origin struct {
	Tool    string // the program that has observed, with its version
	Command []string
	PID     int
	Start   time.Time
}

// WriteSnapshot writes a coverage as a snapshot, as the user; what was there becomes path.old.
func WriteSnapshot(path string, c *covered.Coverage, from Origin) error {
	s := &wpp.Snapshot{Sections: []*wpp.Section{c.Section()}, Figures: wpp.Figures{
		Tool: from.Tool, Command: from.Command, PID: from.PID, Start: from.Start}}
	if !from.Start.IsZero() {
		s.Figures.Duration = time.Since(from.Start)
	}
	return privilege.AsUser(func() error { return store.WriteFile(path, s) })
}
