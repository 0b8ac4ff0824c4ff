package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/format"
)

// A Draft is a snapshot file in the making. While what it will hold is being recorded, it takes
// segments for which there is no memory. They go to a temporary file in the same directory,
// ".NAME.wpp.NUMBER", which is good for reading whatever happens: what is missing at its end is
// missing, and no more. Finish makes it the snapshot, as WriteFile does. Any number of goroutines
// may use a draft.
type Draft struct {
	path  string
	fsys  files
	mutex sync.Mutex
	ctx   context.Context // done: nothing is written any more
	over  bool            // nothing is taken any more
	file  file            // nil: there is none
	out   *bufio.Writer
	w     *format.Writer
}

// NewDraft returns a draft of a snapshot at path, of which there is nothing yet in the directory.
func NewDraft(path string) *Draft { return newDraft(osFiles{}, path) }

// NewDraftBy is NewDraft, but that by makes each access to a file by its name, as that of the user
// for whom a program with more power writes. by runs the access once, on its caller's goroutine,
// and returns the access's error, or why it has not run it.
func NewDraftBy(by func(access func() error) error, path string) *Draft {
	return newDraft(filesBy{osFiles{}, by}, path)
}

func newDraft(fsys files, path string) *Draft {
	return &Draft{path: path, fsys: fsys, ctx: context.Background()}
}

// A draftWriter writes to the temporary file unless the context is done.
type draftWriter struct{ *Draft }

func (d draftWriter) Write(p []byte) (int, error) {
	if err := d.ctx.Err(); err != nil {
		return 0, err
	}
	return d.file.Write(p)
}

// open makes the temporary file, unless there is one.
func (d *Draft) open() (err error) {
	switch {
	case d.over: // by Finish or Discard, or an error before
		return errors.New("it is given up")
	case d.file != nil:
		return nil
	}
	if _, err := checkPlace(d.fsys, d.path); err != nil {
		return err
	}
	if d.file, err = d.fsys.CreateTemp(dirOf(d.path), "."+filepath.Base(d.path)+".*"); err != nil {
		d.file = nil
		return err
	}
	d.out = bufio.NewWriterSize(draftWriter{d}, 1<<16)
	d.w, err = format.NewWriter(d.out)
	return err
}

// Spill writes a segment of a thread and returns it as one that is in the file. tables are the
// figures and the tables of the program that are known so far, without threads; of its symbols,
// only those that were not handed to Spill before; of its sections, those that need not stay in
// memory. thread is a number below 2^31 that is the thread's alone. What was written is on the disk
// then. After an error the draft takes nothing any
// more, and its file stays as far as it goes.
func (d *Draft) Spill(tables *wpp.Snapshot, thread int, t wpp.Thread) (*wpp.Segment, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	s, err := d.spill(tables, thread, t)
	if err != nil {
		return nil, d.fail(err)
	}
	return s, nil
}

func (d *Draft) spill(tables *wpp.Snapshot, thread int, t wpp.Thread) (*wpp.Segment, error) {
	if err := d.open(); err != nil {
		return nil, err
	}
	if err := d.w.Tables(tables); err != nil {
		return nil, err
	}
	s, err := d.w.Segment(thread, t, d.file)
	if err != nil {
		return nil, err
	}
	first := d.w.Segments() == 1
	if err := d.out.Flush(); err != nil {
		return nil, err
	}
	d.w.Store(tables.Sections, d.file)
	if err := d.file.Sync(); err != nil || !first {
		return s, err
	}
	return s, d.fsys.SyncDir(dirOf(d.path)) // or the file has no name when the power is back
}

// Fail gives up a draft that will not be finished for a reason, and returns that with where what
// was recorded is: what Spill has written stays.
func (d *Draft) Fail(reason error) error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.fail(reason)
}

// fail says where what has been recorded is.
func (d *Draft) fail(err error) error {
	d.over = true
	if d.file == nil || d.w == nil || d.w.Segments() == 0 {
		return also(fmt.Errorf("write snapshot %s: %w", d.path, err), d.discard())
	}
	return fmt.Errorf("write snapshot %s: %w", d.path, &KeptError{err, d.file.Name()})
}

// A KeptError is one that leaves what was recorded before in a file.
type KeptError struct {
	Err  error
	File string
}

func (e *KeptError) Error() string {
	return fmt.Sprintf("%v; what was recorded before is in %s", e.Err, e.File)
}

func (e *KeptError) Unwrap() error { return e.Err }

// Finish writes what is not written yet of a snapshot whose segments may be in the draft, and puts
// the file in its place. See WriteFile. It gives up, with the context's error, when the context is
// done before. Segments stay readable. The draft takes nothing any more. After any other error a
// file that Spill has written to stays, and the error is a KeptError.
func (d *Draft) Finish(ctx context.Context, s *wpp.Snapshot) error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.ctx = ctx
	defer func() { d.over = true }()
	if err := d.finish(s); err != nil {
		return fmt.Errorf("write snapshot %s: %w", d.path, err)
	}
	return nil
}

func (d *Draft) finish(s *wpp.Snapshot) error {
	if err := s.Check(); err != nil {
		return err
	}
	err := d.open()
	if d.file == nil {
		return err
	}
	name, spilled := d.file.Name(), d.w != nil && d.w.Segments() > 0
	if err == nil {
		err = d.complete(s)
	}
	if !s.InSegments() {
		if closeErr := d.file.Close(); err == nil {
			err = closeErr
		}
	}
	d.file = nil
	placed := false
	if err == nil {
		placed, err = place(d.fsys, d.path, name)
	}
	switch {
	case err == nil || placed:
		return err
	case spilled && d.ctx.Err() == nil:
		return &KeptError{err, name}
	}
	return also(err, d.fsys.Remove(name))
}

// complete writes what is not written yet.
func (d *Draft) complete(s *wpp.Snapshot) error {
	if err := d.w.Finish(s); err != nil {
		return err
	}
	if err := d.out.Flush(); err != nil {
		return err
	}
	if err := d.ctx.Err(); err != nil {
		return err
	}
	return d.file.Sync()
}

// Discard removes what there is of a draft that is not finished.
func (d *Draft) Discard() error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.over = true
	if err := d.discard(); err != nil {
		return fmt.Errorf("give up snapshot %s: %w", d.path, err)
	}
	return nil
}

func (d *Draft) discard() error {
	if d.file == nil {
		return nil
	}
	name := d.file.Name()
	err := errors.Join(d.file.Close(), d.fsys.Remove(name))
	d.file = nil
	return err
}
