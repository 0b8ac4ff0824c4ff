package record

import (
	"errors"
	"testing"
)

// A slowWriter begins snapshots that are written when the test says so.
type slowWriter struct {
	begun int
	write chan error
}

func (w *slowWriter) begin() func() error {
	w.begun++
	return func() error { return <-w.write }
}

func newSlow() (*slowWriter, *background) {
	w := &slowWriter{write: make(chan error)}
	return w, &background{begin: w.begin}
}

// next waits until a snapshot has been written.
func next(b *background) error {
	for {
		if done, err := b.poll(); done {
			return err
		}
	}
}

// However many requests come while a snapshot is being written, one is written at a time, and one
// more for all of them.
func TestRequestsMerge(t *testing.T) {
	w, b := newSlow()
	if done, _ := b.poll(); done || b.wait() != nil {
		t.Error("something was written that nobody asked for")
	}
	for range 5 {
		b.request()
	}
	if done, _ := b.poll(); done || w.begun != 1 {
		t.Errorf("%d snapshots begun, one of them written: %v", w.begun, done)
	}
	failed := errors.New("no space")
	w.write <- failed
	if err := next(b); err != failed || w.begun != 2 {
		t.Errorf("%v, %d snapshots begun; want one more for the four requests", err, w.begun)
	}
	w.write <- nil
	if err := next(b); err != nil || w.begun != 2 || b.written != nil {
		t.Errorf("%v, %d snapshots begun", err, w.begun)
	}
	b.request()
	if w.begun != 3 {
		t.Errorf("%d snapshots begun; want a third one", w.begun)
	}
	w.write <- nil
	if err := b.wait(); err != nil {
		t.Error(err)
	}
}

// At the end of the recording the snapshot that is being written is waited for, and none is begun:
// the last one is to come.
func TestLastRequestIsDropped(t *testing.T) {
	w, b := newSlow()
	b.request()
	b.request()
	failed := errors.New("aborted")
	go func() { w.write <- failed }()
	if err := b.wait(); err != failed || w.begun != 1 {
		t.Errorf("%v, %d snapshots begun", err, w.begun)
	}
}
