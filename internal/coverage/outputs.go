package coverage

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"

	"wpptrace/compress/wpp/covered"
	"wpptrace/compress/wpp/store"
	"wpptrace/loader/privilege"
)

// Outputs are where a coverage goes.
type Outputs struct {
	Snapshot string // a file for it; "": none
	LCOV     string // a file for lcov and genhtml; "": none
	JSON     bool   // it is printed as an object, not as a table
}

// Files are those that will be written.
func (o Outputs) Files() (list []string) {
	for _, name := range []string{o.LCOV, o.Snapshot} {
		if name != "" {
			list = append(list, name)
		}
	}
	return list
}

// Check fails where a file could not be written: better now than after the observation.
func (o Outputs) Check() error {
	return privilege.AsUser(func() error {
		if o.Snapshot != "" {
			if err := store.CheckOutput(o.Snapshot, privilege.CheckReplace); err != nil {
				return err
			}
		}
		if o.LCOV == "" {
			return nil
		}
		return checkFile(o.LCOV)
	})
}

// checkFile fails where a file could not be created, or what is there could not be written to.
func checkFile(path string) error {
	st, err := os.Stat(path)
	isThere := err == nil
	if isThere && !st.Mode().IsRegular() && !st.IsDir() { // opening a pipe waits for its reader
		return nil
	}
	const mode = 0o644
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, mode)
	if err != nil {
		return fmt.Errorf("write what has run for lcov: %w: name another file with --lcov", err)
	}
	err = f.Close()
	if !isThere {
		err = cmp.Or(err, os.Remove(path))
	}
	return err
}

// Write prints a coverage, and writes it to the files. remark is called with what the user should
// know of these.
func (o Outputs) Write(out io.Writer, c *covered.Coverage, from Origin,
	remark func(text string)) (err error) {
	if o.Snapshot != "" {
		err = WriteSnapshot(o.Snapshot, c, from)
	}
	if o.LCOV != "" {
		err = errors.Join(err, WriteFile(o.LCOV, c, WriteLCOV))
		if len(c.Sources()) == 0 {
			remark(fmt.Sprintf("%s holds nothing, for lcov knows source lines alone and there is "+
				"no debug information: build with -g, or install it", o.LCOV))
		}
	}
	if o.JSON {
		return errors.Join(err, WriteJSON(out, c))
	}
	return errors.Join(err, WriteTable(out, c))
}
