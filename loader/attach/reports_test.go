package attach

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"wpptrace/bpf"
	"wpptrace/bpf/wire"
)

// drain reads all batches and counts events by kind, and the hits.
func drain(t *testing.T, s *Session) (events map[wire.Kind]int, hits uint64) {
	t.Helper()
	events = map[wire.Kind]int{}
	for {
		b, err := s.Read(time.Now())
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return events, hits
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range b.Len() {
			events[b.Event(i).Kind()]++
		}
		hits += b.Received()
		if hits != b.Hits-b.Lost {
			t.Errorf("%d hits in the events, %d - %d in the batch", hits, b.Hits, b.Lost)
		}
	}
}

// The kernel counts hits before they are reported, and the program is clean after Detach while it
// runs on.
func TestHits(t *testing.T) {
	dir := t.TempDir()
	fifo := dir + "/fifo"
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	s := load(t, "/bin/cat", fifo)
	if err := s.session.Attach(s.exe); err != nil {
		t.Fatal(err)
	}
	if _, err := s.session.Counters().Hits(s.Process.PID); err == nil {
		t.Error("hits of a thread that has made none")
	}
	if err := s.session.Enable(true); err != nil {
		t.Fatal(err)
	}
	s.Release()
	f, err := os.OpenFile(fifo, os.O_WRONLY, 0) // when cat opens the other end
	if err != nil {
		t.Fatal(err)
	}
	h, err := s.session.Counters().Hits(s.Process.PID)
	if err != nil || h.Made == 0 || h.Repeating > h.Made {
		t.Errorf("%+v, %v", h, err)
	}
	if err := s.session.Detach(); err != nil {
		t.Fatal(err)
	}
	if err := checkText(s.Process, s.session.images.executable().image); err != nil {
		t.Errorf("after detaching: %v", err)
	}
	if err := s.session.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if events, hits := drain(t, s.session); hits < h.Made || events[wire.End] != 0 {
		t.Errorf("%d hits of %d, events %v", hits, h.Made, events)
	}
	f.Close()
	<-s.Done()
	if status, err := s.ExitStatus(); status != 0 || err != nil {
		t.Errorf("exit status %d, %v", status, err)
	}
}

// What is lost is known by thread, and a thread by its number and its start; where there is no room
// to note it, that is counted.
func TestLosses(t *testing.T) {
	for _, full := range []bool{false, true} {
		before := now(t)
		s := loadRing(t, os.Getpagesize(), "/bin/bash", "-c",
			"for ((i = 0; i < 50; i++)); do x=$i; done")
		if full {
			fillLosses(t, s.session)
		}
		if err := s.session.Attach(s.exe); err != nil {
			t.Fatal(err)
		}
		if err := s.session.Enable(true); err != nil {
			t.Fatal(err)
		}
		s.Release()
		<-s.Done() // nobody reads meanwhile
		m, err := s.session.Counters().Metrics()
		if err != nil || m.LostHits == 0 || (m.LostByWhom > 0) != full {
			t.Errorf("full %v: %+v, %v", full, m, err)
		}
		list, err := s.session.Counters().Losses()
		if err != nil {
			t.Fatal(err)
		}
		list = slices.DeleteFunc(list,
			func(l Loss) bool { return l.Thread != uint32(s.Process.PID) })
		if full {
			if len(list) > 0 {
				t.Errorf("losses are noted where there is no room: %+v", list)
			}
		} else if len(list) != 1 || list[0].Lost != m.LostHits || list[0].Hits < list[0].Lost ||
			list[0].Started < before || list[0].Started > now(t) {
			t.Errorf("process %d, started after %d ns, lost %d hits: %+v", s.Process.PID, before,
				m.LostHits, list)
		}
	}
}

// now is the kernel's clock, ns.
func now(t *testing.T) uint64 {
	t.Helper()
	n, err := clock(unix.CLOCK_BOOTTIME)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// fillLosses leaves no room to note losses.
func fillLosses(t *testing.T, s *Session) {
	t.Helper()
	n := int(s.objects.Losses.MaxEntries())
	who, losses := make([]bpf.TracerLife, n), make([]bpf.TracerLoss, n)
	for i := range who {
		who[i] = bpf.TracerLife{Tid: 1 << 22, Started: uint64(i)}
	}
	if _, err := s.objects.Losses.BatchUpdate(who, losses, nil); err != nil {
		t.Fatal(err)
	}
}

// What a thread hands over at its end, while the others are drained, is waited for.
func TestFlushWaitsForThreadsThatEnd(t *testing.T) {
	s := load(t, "/bin/cat", "/dev/null")
	if err := s.session.Attach(s.exe); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.PidfdOpen(s.Process.PID, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	atIt := bpf.TracerThread{Sending: 1}
	atIt.Batch.Tid = uint32(s.Process.PID)
	if err := s.session.objects.Threads.Put(int32(fd), atIt); err != nil {
		t.Fatal(err)
	}
	if n, err := s.session.threads.flushOnce(); n != 1 || err != nil {
		t.Errorf("%d threads are at it, %v; want 1", n, err)
	}
	flushed := make(chan error)
	go func() { flushed <- s.session.Flush(t.Context()) }()
	atIt.Sending = 0
	if err := s.session.objects.Threads.Put(int32(fd), atIt); err != nil {
		t.Fatal(err)
	}
	if err := <-flushed; err != nil {
		t.Error(err)
	}
}

// What a thread has left comes behind what the ring buffer holds of it, which it has filled. How
// much bash does depends on its environment: in some runs what is left still has room.
func TestRestsComeLast(t *testing.T) {
	kept := 0
	for i := range 5 {
		s := loadRing(t, 4<<10, "/bin/bash", "-c", fmt.Sprintf("for ((i = 0; i < %d; i++)); do "+
			":; done", 100+i))
		if err := errors.Join(s.session.Attach(s.exe), s.session.Enable(true)); err != nil {
			t.Fatal(err)
		}
		s.Release()
		<-s.Done()
		if s.session.reports.overflow.AvailableBytes() > 0 {
			kept++
		}
		s.readsInOrder(t)
	}
	if kept == 0 {
		t.Error("nothing was left: the test does not test")
	}
}

// eachWaiting reads what waits to be read.
func eachWaiting(t testing.TB, s *Session, visit func(b wire.Batch)) {
	t.Helper()
	for {
		b, err := s.Read(time.Now())
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		visit(b)
	}
}

// readsInOrder fails the test if what is read of the only thread is not in order, or not to its
// end.
func (s *subject) readsInOrder(t *testing.T) {
	t.Helper()
	var sequences []uint64
	var last wire.Kind
	eachWaiting(t, s.session,
		func(b wire.Batch) {
			sequences, last = append(sequences, b.Sequence), b.Event(b.Len()-1).Kind()
		})
	if !slices.IsSorted(sequences) || last != wire.End {
		t.Errorf("batches %d, the last event is %v", sequences, last)
	}
	if m, err := s.session.Counters().Metrics(); err != nil ||
		m.LostBatches != sequences[len(sequences)-1]+1-uint64(len(sequences)) {
		t.Errorf("%d batches lost, %v; received %d", m.LostBatches, err, sequences)
	}
}
