package dap

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/google/go-dap"

	"wpptrace/compress/wpp"
	"wpptrace/query/names"
	"wpptrace/query/stepping"
)

// A Server answers the requests of one client after the other.
type Server struct {
	// Snapshot is what is debugged, where the client names none; nil: it has to.
	Snapshot *wpp.Snapshot
	// Open reads the snapshot that a client names.
	Open func(path string) (*wpp.Snapshot, error)
	// TID is the thread that is shown first; 0: the first one.
	TID int
}

// Serve answers a client until it disconnects, or ends its requests. It fails where what comes is
// no message of the protocol, or an answer cannot be written. Behind it r may still be read from:
// close it.
func (s *Server) Serve(r io.Reader, w io.Writer) error {
	x := &session{server: s, out: bufio.NewWriter(w), paths: map[string]string{}}
	requests, done := make(chan request, mostWaiting), make(chan struct{})
	defer close(done)
	go x.read(bufio.NewReader(r), requests, done)
	for q := range requests {
		if q.end != nil {
			if errors.Is(q.end, io.EOF) {
				return nil
			}
			return fmt.Errorf("read a request: %w", q.end)
		}
		if err := x.handle(q); err != nil || x.ended {
			return err
		}
	}
	return nil
}

// mostWaiting is how many requests may wait for one that is slow, so that a pause behind them is
// seen.
const mostWaiting = 256

// A request is what has been read: a message, or why it is none.
type request struct {
	message dap.Message
	wrong   error // the message is not understood, but perhaps for its number
	end     error // nothing more comes
}

// A session is what one client sees. It belongs to one goroutine, but for pause.
type session struct {
	server   *Server
	out      *bufio.Writer
	sent     int         // messages
	pause    atomic.Bool // whoever moves is to stop
	ended    bool
	launched launched
	names    *names.Names
	threads  map[int]*stepping.State // by index in the snapshot's: those that somebody asked for
	current  int                     // the thread that moved last
	stops    []stop
	watches  []stepping.Watch
	watchIDs []int             // of watches
	made     int               // stops and watches
	paths    map[string]string // of the client, by source file of the snapshot
	handles  []handle
}

// read sends on what the client sends, and says at once that it wants a pause, or has gone away.
func (x *session) read(in *bufio.Reader, to chan<- request, done <-chan struct{}) {
	for {
		var q request
		data, err := dap.ReadBaseMessage(in)
		if err != nil {
			q.end = err
		} else {
			q.message, q.wrong = dap.DecodeProtocolMessage(data)
		}
		switch q.message.(type) {
		case *dap.PauseRequest, *dap.DisconnectRequest, *dap.TerminateRequest:
			x.pause.Store(true)
		}
		if q.end != nil {
			x.pause.Store(true)
		}
		select {
		case to <- q:
		case <-done:
			return
		}
		if q.end != nil {
			return
		}
	}
}

// handle answers a request. It fails where an answer cannot be written.
func (x *session) handle(q request) error {
	asked, isRequest := q.message.(dap.RequestMessage)
	var unknown *dap.DecodeProtocolMessageFieldError
	switch {
	case errors.As(q.wrong, &unknown):
		of := &dap.Request{Command: unknown.FieldValue}
		of.Seq = unknown.Seq
		return x.refuse(of, fmt.Errorf("%s %q is not supported", unknown.FieldName,
			unknown.FieldValue))
	case q.wrong != nil && isRequest:
		return x.refuse(asked.GetRequest(), fmt.Errorf("the request is wrong: %w", q.wrong))
	case q.wrong != nil:
		return x.refuse(&dap.Request{}, fmt.Errorf("a message that is no request: %w", q.wrong))
	case !isRequest: // an answer, or an event, of a client: nobody has asked
		return nil
	}
	answer, then, err := x.answer(asked)
	if err != nil {
		return x.refuse(asked.GetRequest(), err)
	}
	*answer.GetResponse() = dap.Response{RequestSeq: asked.GetRequest().Seq, Success: true,
		Command: asked.GetRequest().Command}
	answer.GetResponse().Type = "response"
	if err := x.send(answer, &answer.GetResponse().Seq); err != nil || then == nil {
		return err
	}
	return then()
}

func (x *session) refuse(q *dap.Request, why error) error {
	r := &dap.ErrorResponse{}
	r.Response = dap.Response{RequestSeq: q.Seq, Command: q.Command, Message: why.Error()}
	r.Type = "response"
	r.Body.Error = &dap.ErrorMessage{Id: 1, Format: "{error}",
		Variables: map[string]string{"error": why.Error()}}
	return x.send(r, &r.Seq)
}

// event sends an event.
func (x *session) event(name string, e dap.EventMessage) error {
	e.GetEvent().Type, e.GetEvent().Event = "event", name
	return x.send(e, &e.GetEvent().Seq)
}

func (x *session) send(m dap.Message, number *int) error {
	x.sent++
	*number = x.sent
	err := dap.WriteProtocolMessage(x.out, m)
	if err == nil {
		err = x.out.Flush()
	}
	if err != nil {
		return fmt.Errorf("write an answer: %w", err)
	}
	return nil
}
