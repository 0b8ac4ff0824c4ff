package record

import (
	"context"
	"errors"
	"os"
	"path"

	"wpptrace/decoder"
	"wpptrace/internal/record/rawtrace"
	"wpptrace/internal/record/source"
	"wpptrace/internal/remedy"
	"wpptrace/internal/traced"
	"wpptrace/loader/attach"
	"wpptrace/loader/target"
)

// images are the executable of a process and those of its libraries that are traced. Their probes
// go in together; a library is added when the process has mapped it.
type images struct {
	program   *traced.Program
	exe       *os.File
	session   *attach.Session
	decoder   *decoder.Decoder
	raw       *rawtrace.Trace // nil: there is none
	threads   *threads
	troubles  *source.Troubles
	libraries *libraries
	ids       []target.FileID // of the files of the plan's parts
	handle    func(Event)
}

// identify notes which file the plan's next part is of.
func (m *images) identify(f *os.File) error {
	id, err := target.IDOf(f)
	if err == nil {
		m.ids = append(m.ids, id)
	}
	return err
}

// addLibraries has those libraries traced that the selection names and that the process has mapped
// by now. One that cannot be is external code.
func (m *images) addLibraries() error {
	list, err := m.libraries.next()
	if err != nil {
		return err
	}
	for _, lib := range list {
		made, err := m.planLibrary(lib)
		var lasting *remedy.Error // which somebody has to do something about
		switch {
		case err != nil && !errors.As(err, &lasting) && (!m.session.Attached() ||
			m.session.Mapped() || !m.libraries.isMapped(lib)):
			// it comes and goes
			m.libraries.forget(lib)
			continue
		case err != nil:
			m.handle(LibraryLeftOut{lib.Path, err})
			continue
		}
		if err := m.addLibrary(made); err != nil {
			return err
		}
		m.handle(LibraryAdded{path.Base(lib.Path), made})
	}
	return nil
}

// planLibrary makes a library the plan's last part.
func (m *images) planLibrary(lib target.Library) (*traced.Program, error) {
	if err := m.session.MayAdd(); err != nil {
		return nil, err
	}
	made, err := m.libraries.open(lib)
	if err != nil {
		return nil, err
	}
	if made.Loads != nil {
		return made, m.program.Loads.Append(made.Loads)
	}
	return made, m.program.Plan.Append(made.Plan)
}

// addLibrary has the last part of the plan decoded and probed.
func (m *images) addLibrary(made *traced.Program) error {
	m.troubles.NotePassedOver(made.Image)
	if err := m.decoder.Grow(); err != nil {
		return err
	}
	if err := m.identify(m.libraries.last()); err != nil {
		return err
	}
	m.raw.Define(made.Plan)
	if err := m.threads.values.place(m.libraries.last(), made.Image); err != nil {
		return err
	}
	return m.session.Add(m.libraries.last())
}

// takeMapped deals with code that the process has mapped. It is held meanwhile; if somebody has
// let it go on, what its threads have done is not known.
func (m *images) takeMapped(abort context.Context) error {
	if !m.session.Mapped() {
		return nil
	}
	escaped, err := m.refresh()
	if err != nil || !escaped || !m.session.Attached() {
		return err
	}
	if err := m.threads.detach(abort); err != nil {
		return err
	}
	if err := m.threads.leave(); err != nil {
		return err
	}
	if err := m.attachAgain(); err != nil {
		return err
	}
	return m.session.Enable(false)
}

func (m *images) refresh() (escaped bool, err error) {
	err = m.session.Refresh()
	if err == nil {
		err = m.addLibraries()
	}
	if err != nil {
		return false, gone(m.threads.process, err)
	}
	return m.settle()
}

// attachAgain puts the probes in again, in those libraries too that have been mapped since they
// were taken out.
func (m *images) attachAgain() error {
	if err := m.session.Attach(m.exe); err != nil {
		return err
	}
	for m.session.Mapped() {
		if _, err := m.refresh(); err != nil {
			return err
		}
	}
	return nil
}

// settle reports whether somebody has let the process go on before its libraries were dealt with.
func (m *images) settle() (escaped bool, err error) {
	if escaped, err = m.session.Settle(); escaped {
		m.handle(LetGoOn{})
	}
	return escaped, err
}
