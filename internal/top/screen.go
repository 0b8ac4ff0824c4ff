package top

import (
	"encoding/gob"
	"errors"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// showScreen shows updates on the terminal until there are no more, or the user has had enough.
func showScreen(o *Opening, updates *gob.Decoder) error {
	first, more, err := next(updates) // a recording that cannot begin leaves the terminal as it is
	if err != nil || !more {
		return err
	}
	p := tea.NewProgram(newModel(o))
	read := make(chan error, 1)
	go func() { read <- takeAll(p, o, first, updates) }()
	_, err = p.Run()
	if errors.Is(err, tea.ErrInterrupted) { // by a signal, which the recording has got, too
		err = nil
	}
	if err != nil {
		return fmt.Errorf("show the recording: %w", err)
	}
	select {
	case err := <-read:
		return err
	default:
		return nil
	}
}

// takeAll hands updates to the screen, and ends it behind the last one.
func takeAll(p *tea.Program, o *Opening, u update, updates *gob.Decoder) error {
	defer p.Quit()
	asking := asker{selected: o.Selected}
	for {
		to := updated{content: asking.ask(&u)}
		to.update = u
		to.Snapshot = nil
		p.Send(to)
		var more bool
		var err error
		if u, more, err = next(updates); err != nil || !more {
			return err
		}
	}
}

// mixed is the style of a row that has styles in it.
const mixed style = -1

// looks are the sequences that styles begin with.
var looks = map[style]string{bold: "\x1b[1m", title: "\x1b[1;7m", chosen: "\x1b[7m",
	faintChosen: "\x1b[4m", faint: "\x1b[2m"}

// render is a row as the terminal takes it.
func (r row) render() string {
	look := looks[r.style]
	if look == "" || r.text == "" {
		return r.text
	}
	return look + r.text + "\x1b[0m"
}

// beside puts two rows side by side, of which the first is so wide.
func beside(a, b row, width int, gap string) row {
	a.text = rule(cut(a.text, width), width)
	return row{a.render() + gap + b.render(), mixed}
}

// View is the whole screen.
func (m *model) View() tea.View {
	rows := m.rows()
	lines := make([]string, len(rows))
	for i, r := range rows {
		if r.style == title || r.style == chosen {
			r.text = rule(r.text, m.width)
		}
		lines[i] = r.render()
	}
	v := tea.NewView(strings.Join(lines, "\n"))
	v.AltScreen = true
	return v
}
