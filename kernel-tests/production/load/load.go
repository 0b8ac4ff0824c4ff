package load

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// A Client is a connection to a server. Close may be called while Ask waits, which fails then.
type Client interface {
	// Ask sends a request and waits for the answer. It is called by one goroutine.
	Ask() error
	Close() error
}

// A Load asks a server on several connections, on each without a pause.
type Load struct {
	clients []Client
	meters  []*Meter
	done    sync.WaitGroup
	mu      sync.Mutex
	closed  bool
	err     error // the first one
}

// Start begins to ask. The clients are the load's, which closes them.
func Start(clients []Client) *Load {
	l := &Load{clients: clients}
	now := time.Now()
	for _, c := range clients {
		m := &Meter{}
		m.Begin(now)
		l.meters = append(l.meters, m)
		l.done.Go(func() { l.ask(c, m) })
	}
	return l
}

func (l *Load) ask(c Client, m *Meter) {
	for {
		err := c.Ask()
		if err != nil {
			l.failed(err)
			return
		}
		m.Answer(time.Now())
		if l.over() {
			return
		}
	}
}

func (l *Load) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

func (l *Load) failed(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil && !l.closed {
		l.err = fmt.Errorf("ask the server: %w", err)
	}
}

// Begin forgets what was, and measures from now on.
func (l *Load) Begin() {
	now := time.Now()
	for _, m := range l.meters {
		m.Begin(now)
	}
}

// Figures are those since Begin. They fail where a connection has.
func (l *Load) Figures() (Figures, error) {
	f := Total(time.Now(), l.meters)
	l.mu.Lock()
	defer l.mu.Unlock()
	return f, l.err
}

// Answers is how many answers there were since Begin.
func (l *Load) Answers() (n uint64) {
	for _, m := range l.meters {
		n += m.Answers()
	}
	return n
}

// Close ends the load and waits until nothing asks any more.
func (l *Load) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	var err error
	for _, c := range l.clients {
		err = errors.Join(err, c.Close())
	}
	l.done.Wait()
	return err
}
