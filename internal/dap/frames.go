package dap

import (
	"encoding/base64"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/google/go-dap"

	"wpptrace/query/names"
	"wpptrace/query/stepping"
	"wpptrace/query/valuereport"
	"wpptrace/query/values"
)

// A handle is what a number stands for that the client has been given since something moved: an
// activation, a scope of it, or a variable that has parts.
type handle struct {
	thread, frame int
	scope         scope
	whole         *values.Asked // of parts
}

// A scope is some of what an activation has.
type scope int

const (
	frames scope = iota
	locals
	globals
	registers
	parts
)

// handleOf gives out a number: of the same the same.
func (x *session) handleOf(h handle) int {
	is := func(other handle) bool {
		if a, b := h.whole, other.whole; a != nil && b != nil && a.Variable == b.Variable &&
			a.String() == b.String() {
			other.whole = a
		}
		return h == other
	}
	if i := slices.IndexFunc(x.handles, is); i >= 0 {
		return i + 1
	}
	x.handles = append(x.handles, h)
	return len(x.handles)
}

// momentOf is what is known where a number stands for a scope, or an activation.
func (x *session) momentOf(id int, isFrame bool) (m *stepping.Moment, h handle, err error) {
	if id < 1 || id > len(x.handles) || (x.handles[id-1].scope == frames) != isFrame {
		return nil, h, fmt.Errorf("%d stands for nothing since a thread has moved", id)
	}
	h = x.handles[id-1]
	state, err := x.thread(h.thread)
	if err != nil {
		return nil, h, err
	}
	m, err = state.In(h.frame)
	return m, h, err
}

// mostFrames is how many activations are sent at once.
const mostFrames = 1000

func (x *session) stackTrace(a *dap.StackTraceArguments) (body dap.StackTraceResponseBody,
	err error) {
	state, err := x.thread(a.ThreadId)
	if err != nil {
		return body, err
	}
	list, err := state.Frames()
	if err != nil {
		return body, err
	}
	from := min(max(a.StartFrame, 0), len(list))
	n := len(list) - from
	if a.Levels > 0 {
		n = min(n, a.Levels)
	}
	body.TotalFrames = len(list)
	for i, p := range list[from : from+min(n, mostFrames)] {
		name := x.names.Routine(p.Routine)
		if p.Span.Line == 0 {
			name += fmt.Sprintf("+%#x", p.Addr-x.launched.snapshot.Routines[p.Routine].Entry)
		}
		body.StackFrames = append(body.StackFrames, dap.StackFrame{
			Id:     x.handleOf(handle{thread: a.ThreadId, frame: from + i}),
			Name:   name,
			Source: x.sourceOf(p),
			Line:   p.Span.Line,
		})
	}
	return body, nil
}

// sourceOf is the file of a place; nil: it is not known.
func (x *session) sourceOf(p stepping.Place) *dap.Source {
	if p.Span.Line == 0 {
		return nil
	}
	file := path.Clean(x.launched.snapshot.Files[p.Span.File])
	if there, ok := x.paths[file]; ok {
		file = there
	}
	return &dap.Source{Name: names.Printable(path.Base(file)), Path: file}
}

func (x *session) scopes(frame int) ([]dap.Scope, error) {
	if _, _, err := x.momentOf(frame, true); err != nil {
		return nil, err
	}
	h := x.handles[frame-1]
	of := func(s scope) int {
		return x.handleOf(handle{thread: h.thread, frame: h.frame, scope: s})
	}
	return []dap.Scope{
		{Name: "Locals", PresentationHint: "locals", VariablesReference: of(locals)},
		{Name: "Globals", VariablesReference: of(globals), Expensive: true},
		{Name: "Registers", PresentationHint: "registers", VariablesReference: of(registers)},
	}, nil
}

func (x *session) variables(a *dap.VariablesArguments) ([]dap.Variable, error) {
	m, h, err := x.momentOf(a.VariablesReference, false)
	if err != nil {
		return nil, err
	}
	list := []dap.Variable{}
	for _, v := range x.listOf(m, h) {
		list = append(list, dap.Variable{Name: names.Printable(nameIn(h, v)),
			EvaluateName: v.String(), Value: shown(valuereport.TextAt(m, v)),
			VariablesReference: x.partsOf(h, v), MemoryReference: memoryOf(m, v)})
	}
	if h.scope == registers {
		for n := range valuereport.Registers {
			name, text := valuereport.RegisterAt(m, n)
			list = append(list, dap.Variable{Name: name, Value: shown(text),
				EvaluateName: "$" + name})
		}
	}
	return list, nil
}

// mostParts is how many elements of an array are sent.
const mostParts = 1000

// listOf are the variables that a number stands for.
func (x *session) listOf(m *stepping.Moment, h handle) []*values.Asked {
	switch h.scope {
	case locals:
		return m.Locals()
	case globals:
		return m.Globals()
	case parts:
		return h.whole.Parts(mostParts)
	}
	return nil
}

// nameIn is the name of a variable, or that of a part in what it is of.
func nameIn(h handle, v *values.Asked) string {
	if h.whole == nil {
		return v.String()
	}
	return strings.TrimLeft(strings.TrimPrefix(v.String(), h.whole.String()), ".->")
}

// partsOf is a number that stands for the parts of a variable; 0: it has none.
func (x *session) partsOf(h handle, v *values.Asked) int {
	if len(v.Parts(1)) == 0 {
		return 0
	}
	return x.handleOf(handle{thread: h.thread, frame: h.frame, scope: parts, whole: v})
}

// shown is a text of a value as an editor shows it.
func shown(text string) string {
	if text == "-" {
		return "unknown"
	}
	return text
}

func (x *session) evaluate(a *dap.EvaluateArguments) (body dap.EvaluateResponseBody, err error) {
	if a.Expression == "" {
		return body, errors.New("give VARIABLE, $REGISTER or x/ADDRESS:SIZE")
	}
	frame := a.FrameId
	if frame == 0 {
		frame = x.handleOf(handle{thread: x.current + 1})
	}
	m, h, err := x.momentOf(frame, true)
	if err != nil {
		return body, err
	}
	if v, err := m.Variable(a.Expression); err == nil {
		body.VariablesReference, body.MemoryReference = x.partsOf(h, v), memoryOf(m, v)
	}
	text, err := valuereport.Evaluate(m, a.Expression, valuereport.Typed)
	body.Result = shown(text)
	return body, err
}

// memoryOf is what the client reads memory by, where a variable is in memory or points there; "":
// it is neither, or it is not known where.
func memoryOf(m *stepping.Moment, v *values.Asked) string {
	if w, _, err := valuereport.WatchAt(m, v.String()); err == nil {
		return fmt.Sprintf("%#x", w.Addr)
	}
	return ""
}

// mostBytes is how many bytes of memory are sent at once.
const mostBytes = 1 << 20

// readMemory reads what memory holds for the thread that moved last: the bytes that are known, and
// how many behind these are not.
func (x *session) readMemory(a *dap.ReadMemoryArguments) (body dap.ReadMemoryResponseBody,
	err error) {
	addr, err := strconv.ParseUint(a.MemoryReference, 0, 64)
	if err != nil {
		return body, fmt.Errorf("%q is no address", a.MemoryReference)
	}
	if a.Count < 0 || a.Count > mostBytes {
		return body, fmt.Errorf("%d bytes are asked for, and at most %d are sent", a.Count,
			mostBytes)
	}
	m, _, err := x.momentOf(x.handleOf(handle{thread: x.current + 1}), true)
	if err != nil {
		return body, err
	}
	addr += uint64(a.Offset)
	body.Address = fmt.Sprintf("%#x", addr)
	var data []byte
	for n := 0; n < a.Count; n++ {
		var b [1]byte
		isKnown := m.Held(addr+uint64(n), b[:]).Known&1 != 0
		switch {
		case isKnown && body.UnreadableBytes > 0:
			a.Count = n // the client asks anew from here
		case isKnown:
			data = append(data, b[0])
		default:
			body.UnreadableBytes++
		}
	}
	body.Data = base64.StdEncoding.EncodeToString(data)
	return body, nil
}
