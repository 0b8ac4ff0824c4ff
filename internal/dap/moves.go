package dap

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/google/go-dap"

	"wpptrace/compress/wet"
	"wpptrace/compress/wpp"
	"wpptrace/query/names"
	"wpptrace/query/profile"
	"wpptrace/query/stepping"
	"wpptrace/query/valuereport"
	"wpptrace/query/values"
)

// launched is what is debugged.
type launched struct {
	snapshot *wpp.Snapshot // nil: nothing yet
	threads  []int         // the indices of those that have values
	runs     bool          // it is not to stop before its first instruction
}

// A stop is a breakpoint that has a place.
type stop struct {
	stepping.Stop
	id     int
	source string // the client's path; "": it is one of a routine
}

var capabilities = dap.Capabilities{
	SupportsConfigurationDoneRequest: true,
	SupportsFunctionBreakpoints:      true,
	SupportsEvaluateForHovers:        true,
	SupportsStepBack:                 true,
	SupportsSteppingGranularity:      true,
	SupportsDataBreakpoints:          true,
	SupportsReadMemoryRequest:        true,
}

// answer is the answer to a request, and what comes behind it; nil: nothing.
func (x *session) answer(q dap.RequestMessage) (r dap.ResponseMessage, then func() error,
	err error) {
	switch q := q.(type) {
	case *dap.InitializeRequest:
		return &dap.InitializeResponse{Body: capabilities}, nil, nil
	case *dap.LaunchRequest:
		return &dap.LaunchResponse{}, x.initialized, x.launch(q.Arguments)
	case *dap.AttachRequest:
		return &dap.AttachResponse{}, x.initialized, x.launch(q.Arguments)
	case *dap.DisconnectRequest:
		x.ended = true
		return &dap.DisconnectResponse{}, nil, nil
	case *dap.TerminateRequest:
		x.ended = true
		return &dap.TerminateResponse{}, nil, nil
	case *dap.SetExceptionBreakpointsRequest: // there are none
		return &dap.SetExceptionBreakpointsResponse{}, nil, nil
	case *dap.PauseRequest: // which has been seen before
		x.pause.Store(false)
		return &dap.PauseResponse{}, nil, nil
	}
	if x.launched.snapshot == nil {
		return nil, nil, errors.New("nothing is debugged yet: launch has not come")
	}
	switch q := q.(type) {
	case *dap.SetBreakpointsRequest:
		list := x.setBreakpoints(&q.Arguments)
		return &dap.SetBreakpointsResponse{Body: dap.SetBreakpointsResponseBody{
			Breakpoints: list}}, nil, nil
	case *dap.SetFunctionBreakpointsRequest:
		list := x.setFunctionBreakpoints(&q.Arguments)
		return &dap.SetFunctionBreakpointsResponse{
			Body: dap.SetFunctionBreakpointsResponseBody{Breakpoints: list}}, nil, nil
	case *dap.DataBreakpointInfoRequest:
		body, err := x.watchOf(&q.Arguments)
		return &dap.DataBreakpointInfoResponse{Body: body}, nil, err
	case *dap.SetDataBreakpointsRequest:
		list := x.setWatches(&q.Arguments)
		return &dap.SetDataBreakpointsResponse{
			Body: dap.SetDataBreakpointsResponseBody{Breakpoints: list}}, nil, nil
	case *dap.ConfigurationDoneRequest:
		return &dap.ConfigurationDoneResponse{}, x.begin, nil
	case *dap.ThreadsRequest:
		return &dap.ThreadsResponse{Body: dap.ThreadsResponseBody{Threads: x.listThreads()}}, nil,
			nil
	case *dap.ContinueRequest:
		then, err = x.move(q.Arguments.ThreadId, "", stepping.Forward, (*stepping.State).Run)
		return &dap.ContinueResponse{}, then, err
	case *dap.ReverseContinueRequest:
		then, err = x.move(q.Arguments.ThreadId, "", stepping.Back, (*stepping.State).Run)
		return &dap.ReverseContinueResponse{}, then, err
	case *dap.NextRequest:
		a := &q.Arguments
		then, err = x.move(a.ThreadId, a.Granularity, stepping.Forward, (*stepping.State).Line)
		return &dap.NextResponse{}, then, err
	case *dap.StepBackRequest:
		a := &q.Arguments
		then, err = x.move(a.ThreadId, a.Granularity, stepping.Back, (*stepping.State).Line)
		return &dap.StepBackResponse{}, then, err
	case *dap.StepInRequest:
		a := &q.Arguments
		then, err = x.move(a.ThreadId, a.Granularity, stepping.Forward, (*stepping.State).Into)
		return &dap.StepInResponse{}, then, err
	case *dap.StepOutRequest:
		then, err = x.move(q.Arguments.ThreadId, "", stepping.Forward, (*stepping.State).Out)
		return &dap.StepOutResponse{}, then, err
	case *dap.StackTraceRequest:
		body, err := x.stackTrace(&q.Arguments)
		return &dap.StackTraceResponse{Body: body}, nil, err
	case *dap.ScopesRequest:
		list, err := x.scopes(q.Arguments.FrameId)
		return &dap.ScopesResponse{Body: dap.ScopesResponseBody{Scopes: list}}, nil, err
	case *dap.VariablesRequest:
		list, err := x.variables(&q.Arguments)
		return &dap.VariablesResponse{Body: dap.VariablesResponseBody{Variables: list}}, nil, err
	case *dap.EvaluateRequest:
		body, err := x.evaluate(&q.Arguments)
		return &dap.EvaluateResponse{Body: body}, nil, err
	case *dap.ReadMemoryRequest:
		body, err := x.readMemory(&q.Arguments)
		return &dap.ReadMemoryResponse{Body: body}, nil, err
	}
	return nil, nil, fmt.Errorf("command %q is not supported", q.GetRequest().Command)
}

// launch takes what a client wants to debug: the snapshot program, if the server has none.
func (x *session) launch(arguments json.RawMessage) error {
	var a struct {
		Program     string `json:"program"`
		StopOnEntry *bool  `json:"stopOnEntry"`
	}
	if len(arguments) > 0 {
		if err := json.Unmarshal(arguments, &a); err != nil {
			return fmt.Errorf("launch: its arguments are wrong: %w", err)
		}
	}
	s := x.server.Snapshot
	switch {
	case s != nil:
	case a.Program == "":
		return errors.New("launch: nothing is named: program is the snapshot to debug")
	default:
		var err error
		if s, err = x.server.Open(a.Program); err != nil {
			return fmt.Errorf("launch: %w", err)
		}
	}
	l := launched{snapshot: s, runs: a.StopOnEntry != nil && !*a.StopOnEntry}
	for i := range s.Threads {
		segments, err := wet.Segments(s, i)
		if err != nil {
			return fmt.Errorf("launch: %w", err)
		}
		if len(segments) > 0 {
			l.threads = append(l.threads, i)
		}
	}
	if len(l.threads) == 0 {
		return errors.New("launch: the snapshot has no values: wpptrace values records them")
	}
	x.launched, x.names = l, names.Of(s)
	x.threads, x.stops, x.handles = map[int]*stepping.State{}, nil, nil
	x.watches, x.watchIDs = nil, nil
	x.current = l.threads[0]
	for _, i := range l.threads {
		if s.Threads[i].TID == x.server.TID {
			x.current = i
		}
	}
	return nil
}

func (x *session) initialized() error { return x.event("initialized", &dap.InitializedEvent{}) }

// begin is where the client has set its breakpoints.
func (x *session) begin() error {
	if x.launched.runs {
		then, err := x.move(x.current+1, "", stepping.Forward, (*stepping.State).Run)
		if err != nil {
			return x.stopped(dap.StoppedEventBody{Reason: "exception", Text: err.Error()})
		}
		return then()
	}
	return x.stopped(dap.StoppedEventBody{Reason: "entry"})
}

// stopped says that the current thread has stopped.
func (x *session) stopped(why dap.StoppedEventBody) error {
	why.ThreadId, why.AllThreadsStopped = x.current+1, true
	return x.event("stopped", &dap.StoppedEvent{Body: why})
}

func (x *session) listThreads() (list []dap.Thread) {
	for _, i := range x.launched.threads {
		t := &x.launched.snapshot.Threads[i]
		list = append(list, dap.Thread{Id: i + 1,
			Name: strings.TrimSpace(fmt.Sprintf("%s (%d)", names.Printable(t.Name), t.TID))})
	}
	return list
}

// thread is where a thread is, by its number in the protocol.
func (x *session) thread(id int) (*stepping.State, error) {
	i := id - 1
	if i < 0 || i >= len(x.launched.snapshot.Threads) {
		return nil, fmt.Errorf("there is no thread %d: threads lists them", id)
	}
	if x.threads[i] == nil {
		state, err := stepping.New(x.launched.snapshot, i)
		if err != nil {
			return nil, err
		}
		state.Pause = x.pause.Load
		x.threads[i] = state
	}
	return x.threads[i], nil
}

// move moves a thread, and says where it has stopped. What it returns is to be done behind the
// answer.
func (x *session) move(id int, by dap.SteppingGranularity, way stepping.Way,
	move func(*stepping.State, stepping.Way) (stepping.End, error)) (func() error, error) {
	state, err := x.thread(id)
	if err != nil {
		return nil, err
	}
	if by == "instruction" {
		move = (*stepping.State).Instruction
	}
	return func() error {
		x.current, x.handles = id-1, nil
		state.Stops = make([]stepping.Stop, len(x.stops))
		for i := range x.stops {
			state.Stops[i] = x.stops[i].Stop
		}
		state.SetWatches(x.watches)
		end, err := move(state, way)
		if err != nil {
			return x.stopped(dap.StoppedEventBody{Reason: "exception", Description: "error",
				Text: err.Error()})
		}
		why := x.why(state, end)
		if fault, err := state.Fault(); err == nil && fault != nil {
			why.Reason = "exception"
			why.Text = valuereport.Fault(x.launched.snapshot, fault)
		}
		return x.stopped(why)
	}, nil
}

// why is why a thread has stopped.
func (x *session) why(state *stepping.State, end stepping.End) dap.StoppedEventBody {
	switch end {
	case stepping.Reached:
		why := dap.StoppedEventBody{Reason: "function breakpoint"}
		at, err := state.StopsHere()
		if err != nil {
			why.Text = err.Error()
		}
		for _, i := range at {
			why.HitBreakpointIds = append(why.HitBreakpointIds, x.stops[i].id)
			if x.stops[i].source != "" {
				why.Reason = "breakpoint"
			}
		}
		return why
	case stepping.Written:
		why := dap.StoppedEventBody{Reason: "data breakpoint"}
		list, err := state.WritesHere()
		if err != nil {
			why.Text = err.Error()
		}
		for _, w := range list {
			why.HitBreakpointIds = append(why.HitBreakpointIds, x.watchIDs[w.Watch])
			if w.Found {
				why.Text = "written by code that is not traced, or another thread"
			}
		}
		return why
	case stepping.Paused:
		x.pause.Store(false)
		return dap.StoppedEventBody{Reason: "pause"}
	case stepping.Start:
		return dap.StoppedEventBody{Reason: "start of recording"}
	case stepping.Last:
		return dap.StoppedEventBody{Reason: "end of recording"}
	}
	return dap.StoppedEventBody{Reason: "step"}
}

// setBreakpoints sets those of a source file, in place of those that it had.
func (x *session) setBreakpoints(a *dap.SetBreakpointsArguments) []dap.Breakpoint {
	source := a.Source.Path
	if source == "" {
		source = a.Source.Name
	}
	x.learn(source)
	x.drop(source)
	list := make([]dap.Breakpoint, 0, len(a.Breakpoints))
	for _, b := range a.Breakpoints {
		to := x.set(fmt.Sprintf("%s:%d", source, b.Line), source)
		to.Line, to.Source = b.Line, &a.Source
		list = append(list, to)
	}
	return list
}

// setFunctionBreakpoints sets those of routines, in place of those there were.
func (x *session) setFunctionBreakpoints(a *dap.SetFunctionBreakpointsArguments) []dap.Breakpoint {
	x.drop("")
	list := make([]dap.Breakpoint, 0, len(a.Breakpoints))
	for _, b := range a.Breakpoints {
		list = append(list, x.set(b.Name, ""))
	}
	return list
}

// watchOf is what data breakpoints know a variable by.
func (x *session) watchOf(a *dap.DataBreakpointInfoArguments) (
	body dap.DataBreakpointInfoResponseBody, err error) {
	text := a.Name
	var m *stepping.Moment
	switch {
	case a.VariablesReference > 0:
		var h handle
		if m, h, err = x.momentOf(a.VariablesReference, false); err != nil {
			return body, err
		}
		for _, v := range x.listOf(m, h) {
			if nameIn(h, v) == a.Name {
				text = v.String()
			}
		}
	case a.FrameId > 0:
		m, _, err = x.momentOf(a.FrameId, true)
	default:
		m, _, err = x.momentOf(x.handleOf(handle{thread: x.current + 1}), true)
	}
	if err != nil {
		return body, err
	}
	w, _, err := valuereport.WatchAt(m, text)
	if err != nil { // the client shows why, and sets none
		body.Description = err.Error()
		return body, nil
	}
	body.DataId = fmt.Sprintf("%x:%d", w.Addr, w.Size)
	body.Description = fmt.Sprintf("%s, %d bytes at %#x", text, w.Size, w.Addr)
	body.AccessTypes = []dap.DataBreakpointAccessType{"write"}
	return body, nil
}

// setWatches sets the data breakpoints, in place of those there were.
func (x *session) setWatches(a *dap.SetDataBreakpointsArguments) []dap.Breakpoint {
	x.watches, x.watchIDs = nil, nil
	list := make([]dap.Breakpoint, 0, len(a.Breakpoints))
	for _, b := range a.Breakpoints {
		x.made++
		to := dap.Breakpoint{Id: x.made, Verified: true}
		addr, size, err := values.ParseBytes(b.DataId)
		switch {
		case err != nil:
			to.Verified, to.Message = false, err.Error()
		case b.AccessType != "" && b.AccessType != "write":
			to.Verified, to.Message = false, "only writes end a move"
		default:
			x.watches = append(x.watches, stepping.Watch{Addr: addr, Size: size})
			x.watchIDs = append(x.watchIDs, x.made)
		}
		list = append(list, to)
	}
	return list
}

func (x *session) drop(source string) {
	kept := x.stops[:0]
	for _, s := range x.stops {
		if s.source != source {
			kept = append(kept, s)
		}
	}
	x.stops = kept
}

func (x *session) set(place, source string) dap.Breakpoint {
	x.made++
	at, err := stepping.StopAt(x.launched.snapshot, place)
	if err != nil {
		return dap.Breakpoint{Id: x.made, Message: err.Error()}
	}
	x.stops = append(x.stops, stop{at, x.made, source})
	return dap.Breakpoint{Id: x.made, Verified: true}
}

// learn notes where the client has a source file that is not where debug information has it.
func (x *session) learn(source string) {
	file, err := profile.SourceFile(x.launched.snapshot, source)
	if err != nil || !path.IsAbs(source) {
		return
	}
	if _, err := os.Stat(file); err != nil {
		x.paths[file] = source
	}
}
