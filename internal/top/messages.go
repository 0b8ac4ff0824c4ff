package top

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// messages are what is printed while a screen has the terminal. They are safe for concurrent use.
type messages struct {
	mutex sync.Mutex
	lines []string // that were not taken
	all   bytes.Buffer
}

func (m *messages) Write(text []byte) (int, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for line := range strings.Lines(string(text)) {
		m.lines = append(m.lines, strings.TrimSpace(line))
	}
	return m.all.Write(text)
}

// take returns the lines that have come since the last time.
func (m *messages) take() []string {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	lines := m.lines
	m.lines = nil
	return lines
}

// printOn prints all, once.
func (m *messages) printOn(w io.Writer) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	_, err := m.all.WriteTo(w)
	return err
}
