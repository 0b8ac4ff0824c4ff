package guard

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/signal"
	"slices"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"wpptrace/loader/privilege"
	"wpptrace/loader/uprobe"
)

// connFD is the descriptor that start hands on.
const connFD = 3

// A server is the guard's side: the probes and stopped processes that it has to undo.
type server struct {
	conn   *net.UnixConn
	probes map[int]io.Closer
	last   int            // number of a placement
	primer *uprobe.Primer // nil: it was not needed yet

	removing sync.WaitGroup // placements that have begun to go
	mu       sync.Mutex
	failed   error       // of these
	waiting  []removal   // for their turn
	turns    int         // goroutines that take them
	nextTurn time.Time   // when the next one may begin
	stops    []*ebpf.Map // empty: nobody is stopped
}

// serve runs the guard in the process that Start starts: it answers requests until the process that
// started it is gone. Then it removes its probes and continues the processes that were stopped.
func serve() error {
	signal.Ignore(unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGPIPE)
	conn, err := connection(os.NewFile(connFD, "wpptrace"))
	if err != nil {
		return fmt.Errorf("open the connection to wpptrace: %w", err)
	}
	s := &server{conn: conn, probes: map[int]io.Closer{}}
	err = s.answerAll()
	return errors.Join(err, s.undo())
}

// undo removes all probes. Meanwhile, and as long as hits that are under way may stop a process, it
// continues all that are stopped.
func (s *server) undo() error {
	removed := make(chan error, 1)
	go func() {
		last := slices.Sorted(maps.Keys(s.probes)) // those that are hit come last as a rule
		slices.Reverse(last)
		removed <- errors.Join(s.remove(func(l io.Closer) {
			s.removeInTurn(removal{l, func() int { return AnyCPU }})
		}, last), s.settle())
	}()
	if len(s.stops) == 0 {
		return <-removed
	}
	return s.release(removed)
}

func (s *server) answerAll() error {
	r := reply{} // it stands
	for {
		if err := send(s.conn, &r); errors.Is(err, unix.EPIPE) {
			return nil
		} else if err != nil {
			return fmt.Errorf("answer wpptrace: %w", err)
		}
		var q request
		fds, err := receive(s.conn, &q)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
			errors.Is(err, unix.ECONNRESET) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read what wpptrace asks: %w", err)
		}
		r, err = s.do(&q, fds)
		r.Refusal = refusalOf(err)
	}
}

// do fulfils a request. It takes over the descriptors.
func (s *server) do(q *request, fds []int) (r reply, err error) {
	switch {
	case q.Watch && len(fds) > 1:
		var stops *ebpf.Map
		if stops, err = ebpf.NewMapFromFD(fds[0]); err == nil {
			// the others, of links, are only kept
			s.stops = append(s.stops, stops)
		}
	case q.Prime != nil:
		err = s.prime(q.Prime)
	case q.Probe != nil && len(fds) == 2:
		r.Placement, r.Took, err = s.place(q.Probe, os.NewFile(uintptr(fds[0]), "probed"), fds[1])
	case len(q.Remove) > 0 && q.InTurn != 0:
		err = s.remove(func(l io.Closer) {
			s.removeInTurn(removal{l, func() int { return CPUOf(q.InTurn) }})
		}, q.Remove)
	case len(q.Remove) > 0:
		err = s.remove(func(l io.Closer) {
			s.removing.Go(func() { s.take(removal{l, func() int { return q.CPU }}) })
		}, q.Remove)
	case q.Settle:
		err = s.settle()
	case q.Confine != nil:
		s.removing.Wait() // each thread is sent a signal, and answers it
		if s.primer != nil {
			s.primer.Rest()
		}
		err = privilege.Keep(q.Confine.Keep...)
	default:
		closeAll(fds)
		err = errors.New("the guard was asked for nothing that it does")
	}
	return r, err
}

func (s *server) prime(p *priming) (err error) {
	if s.primer == nil {
		if s.primer, err = p.Mechanism.NewPrimer(); err != nil {
			return err
		}
	}
	return s.primer.Prime(p.Stay)
}

func (s *server) place(p *placement, file *os.File, hit int) (id int, took time.Duration,
	err error) {
	defer file.Close()
	program, err := ebpf.NewProgramFromFD(hit)
	if err != nil {
		return 0, 0, err
	}
	defer program.Close()
	var began time.Time
	var l io.Closer
	err = inPlaceOf(p.CPU, func() (err error) {
		began = time.Now()
		l, err = p.Mechanism.Put(file, program, p.Offsets, p.Cookies, p.PID)
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	s.last++
	s.probes[s.last] = l
	return s.last, time.Since(began), nil
}

// A removal is of a placement, on a CPU that is asked for when it begins.
type removal struct {
	placed io.Closer
	cpu    func() int
}

// remove begins to take placements out, each as a function does.
func (s *server) remove(begin func(io.Closer), ids []int) (err error) {
	for _, id := range ids {
		l, ok := s.probes[id]
		if !ok {
			err = errors.Join(err, fmt.Errorf("no probes have the number %d", id))
			continue
		}
		delete(s.probes, id)
		begin(l)
	}
	return err
}

// take takes a placement out. It waits long for the kernel when its probes are out.
func (s *server) take(r removal) {
	failed := inPlaceOf(r.cpu(), r.placed.Close)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = errors.Join(s.failed, failed)
}

// mostTurns is how many placements are taken out in turn at the same time, each by a thread that
// waits for the kernel, where no signal reaches it. These waits end together: so the next ones
// begin one after the other, betweenTurns apart, for together they would hold the process up.
const (
	mostTurns    = 32
	betweenTurns = 2 * time.Millisecond
)

// removeInTurn takes a placement out when it is its turn.
func (s *server) removeInTurn(r removal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = append(s.waiting, r)
	if s.turns < mostTurns {
		s.turns++
		s.removing.Go(s.takeTurns)
	}
}

// takeTurns takes placements out until none waits.
func (s *server) takeTurns() {
	for {
		s.mu.Lock()
		if len(s.waiting) == 0 {
			s.turns--
			s.mu.Unlock()
			return
		}
		r := s.waiting[0]
		s.waiting = s.waiting[1:]
		begin := s.nextTurn
		if now := time.Now(); begin.Before(now) {
			begin = now
		}
		s.nextTurn = begin.Add(betweenTurns)
		s.mu.Unlock()
		time.Sleep(time.Until(begin))
		s.take(r)
	}
}

// settle waits until the placements are gone that have begun to go.
func (s *server) settle() error {
	s.removing.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	failed := s.failed
	s.failed = nil
	return failed
}

// release continues processes until all probes are removed, and a while longer.
func (s *server) release(removed <-chan error) (err error) {
	const enough = 200 * time.Millisecond
	for last := time.Now(); removed != nil ||
		time.Since(last) < enough; time.Sleep(time.Millisecond) {
		stopped, failed := s.resume()
		if failed != nil {
			if removed != nil {
				err = <-removed
			}
			return errors.Join(err, failed)
		}
		select {
		case err = <-removed:
			removed, last = nil, time.Now()
		default:
		}
		if stopped {
			last = time.Now()
		}
	}
	return err
}

// resume continues the processes that BPF programs have stopped. It reports whether there were any.
func (s *server) resume() (any bool, err error) {
	for _, stops := range s.stops {
		stopped, failed := resumeAll(stops)
		any, err = any || stopped, errors.Join(err, failed)
	}
	return any, err
}
