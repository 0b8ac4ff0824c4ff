// Package rawtrace writes the raw trace of a recording besides its snapshot: to a file that is in
// its place when the recording has begun, or to a pipe or a device that somebody reads.
package rawtrace

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"wpptrace/compress/ops"
	"wpptrace/compress/raw"
	"wpptrace/compress/wpp/store"
	"wpptrace/decoder"
	"wpptrace/internal/remedy"
	"wpptrace/loader/plan"
	"wpptrace/loader/privilege"
)

// A Trace is the raw trace that a recording writes besides its snapshot. It belongs to one
// goroutine. A nil one is none, and none of its methods but Besides does anything.
type Trace struct {
	path string
	file *os.File
	// the name of a file until the recording begins, so that what it replaces is there if that
	// fails
	hidden string
	writer *raw.Writer
	failed bool // which has been said
}

// Create begins a trace with all routines of a plan: others are known by their names from those
// that never run. d knows their paths. What path names is opened as the user that asked for it.
func Create(path string, p *plan.Plan, d *decoder.Decoder) (*Trace, error) {
	t, err := open(path)
	if err != nil {
		return nil, rawError(path, err)
	}
	t.writer = raw.NewWriter(t.file, func(routine int, path uint64) (ops.Start, ops.End, error) {
		p, err := d.Path(routine, path)
		return p.Start, p.End, err
	})
	t.Define(p)
	return t, nil
}

// open opens what a trace is written to.
func open(path string) (t *Trace, err error) {
	var f *os.File
	err = privilege.AsUser(func() error {
		f, err = openFile(path)
		return err
	})
	if err != nil {
		return nil, err
	}
	t = &Trace{path: path, file: f}
	if f.Name() != path {
		t.hidden = f.Name()
	}
	return t, nil
}

// Define adds the routines of a plan.
func (t *Trace) Define(p *plan.Plan) {
	if t == nil {
		return
	}
	for _, pr := range p.Routines {
		t.writer.DefineRoutine(pr.ID,
			raw.Routine{Entry: pr.Addr + pr.Offset(), Name: cmp.Or(pr.Name, pr.Symbol)})
	}
}

// openFile opens a pipe, or a device; else it makes a file that Place puts there. A link may lead
// to a pipe, as /dev/fd/63 does, but not to a file.
func openFile(path string) (*os.File, error) {
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist), err == nil && info.Mode().IsRegular():
		return createHidden(path)
	case err != nil:
		return nil, err
	}
	if info, statErr := os.Stat(path); statErr == nil && info.Mode()&fs.ModeNamedPipe != 0 {
		return openPipe(path)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() {
		err = errLinked
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// createHidden makes a file beside path, with a name of its own.
func createHidden(path string) (*os.File, error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".wpptrace-raw.*")
	if err != nil {
		return nil, err
	}
	if err := privilege.Give(f); err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	return f, nil
}

// Place puts the file in its place. One that is there becomes path.old: that one may be another's
// to read, or have another name.
func (t *Trace) Place() error {
	if t == nil || t.hidden == "" {
		return nil
	}
	err := privilege.AsUser(func() error {
		if err := os.Rename(t.path, store.Old(t.path)); err != nil && !errors.Is(err,
			fs.ErrNotExist) {
			return err
		}
		return os.Rename(t.hidden, t.path)
	})
	if err != nil {
		return rawError(t.path, err)
	}
	t.hidden = ""
	return nil
}

// pipePatience is how long a pipe is waited for that nobody has opened to read it.
const pipePatience = 5 * time.Second

var errUnread = fmt.Errorf("nobody has opened the pipe to read it for %v", pipePatience)

// openPipe opens a pipe to write it. Who reads it may be about to begin.
func openPipe(path string) (*os.File, error) {
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		f, err := os.OpenFile(path, os.O_WRONLY|unix.O_NONBLOCK, 0)
		if !errors.Is(err, unix.ENXIO) {
			return f, err
		}
		if time.Since(began) > pipePatience {
			return nil, errUnread
		}
	}
}

// Failure is why no more of the trace is written, once; nil: it is, or that has been said.
func (t *Trace) Failure() error {
	if t == nil || t.failed || t.writer.Err() == nil {
		return nil
	}
	t.failed = true
	return rawError(t.path, t.writer.Err())
}

// End writes what is left.
func (t *Trace) End() error {
	if t == nil {
		return nil
	}
	err := t.writer.Close()
	if closeErr := t.file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return rawError(t.path, err)
	}
	return nil
}

// Abandon leaves the trace as it is, cut off unless it has ended; if it has not been put in its
// place, there is none.
func (t *Trace) Abandon() error {
	switch {
	case t == nil:
		return nil
	case t.hidden != "":
		return errors.Join(t.file.Close(),
			privilege.AsUser(func() error { return os.Remove(t.hidden) }))
	}
	t.file.Close() // again, if it has ended
	return nil
}

var errLinked = errors.New("it is a link to a regular file, which is not written through")

// rawError is the error of a raw trace that the system does not write.
func rawError(path string, err error) error {
	var why unix.Errno
	switch {
	case errors.As(err, &why):
		err = why
	case errors.Is(err, errUnread):
		return fmt.Errorf("write raw trace %s: %w: start what reads it first", path, err)
	case !errors.Is(err, errLinked):
		return err
	}
	return remedy.Errorf(remedy.OtherRaw, "write raw trace %s: %w", path, err)
}

// Besides returns a sink that hands a thread's operations to another, and writes them. There has to
// be a trace.
func (t *Trace) Besides(sink ops.Sink, th raw.Thread) ops.Sink {
	return besides{sink, t.writer.Thread(th)}
}

// A besides writes what goes to another sink. What is entered and left follows.
type besides struct {
	ops.Sink
	out *raw.ThreadWriter
}

func (s besides) NewPath(routine int, path, times uint64) {
	s.Sink.NewPath(routine, path, times)
	s.out.NewPath(routine, path, times)
}

func (s besides) Mark(m ops.Mark, n uint64) {
	s.Sink.Mark(m, n)
	s.out.Mark(m, n)
}
