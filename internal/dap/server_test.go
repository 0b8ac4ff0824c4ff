package dap_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-dap"

	"wpptrace/compress/wpp"
	server "wpptrace/internal/dap"
	"wpptrace/query/querytest"
)

// A client is an editor.
type client struct {
	t      *testing.T
	conn   net.Conn
	in     *bufio.Reader
	seq    int
	ended  chan error
	events []dap.Message
}

func newClient(t *testing.T, s *server.Server) *client {
	t.Helper()
	mine, its := net.Pipe()
	c := &client{t: t, conn: mine, in: bufio.NewReader(mine), ended: make(chan error, 1)}
	go func() {
		err := s.Serve(its, its)
		its.Close()
		c.ended <- err
	}()
	t.Cleanup(func() { mine.Close() })
	return c
}

// request sends a request, and returns its answer: T, or an error.
func request[T dap.ResponseMessage](c *client, command string, arguments any) (answer T,
	why error) {
	c.t.Helper()
	c.seq++
	data, err := json.Marshal(map[string]any{"seq": c.seq, "type": "request", "command": command,
		"arguments": arguments})
	if err != nil {
		c.t.Fatal(err)
	}
	if err := dap.WriteBaseMessage(c.conn, data); err != nil {
		c.t.Fatal(err)
	}
	for {
		switch m := c.read().(type) {
		case *dap.ErrorResponse:
			if m.RequestSeq != c.seq {
				c.t.Fatalf("%s: an answer to %d", command, m.RequestSeq)
			}
			return answer, errors.New(m.Message)
		case T:
			if r := m.GetResponse(); r.RequestSeq != c.seq || r.Command != command {
				c.t.Fatalf("%s: an answer to %d, %s", command, r.RequestSeq, r.Command)
			}
			return m, nil
		case dap.EventMessage:
			c.events = append(c.events, m)
		default:
			c.t.Fatalf("%s: answered by %T", command, m)
		}
	}
}

// must is request of what is answered.
func must[T dap.ResponseMessage](c *client, command string, arguments any) T {
	c.t.Helper()
	answer, err := request[T](c, command, arguments)
	if err != nil {
		c.t.Fatalf("%s: %v", command, err)
	}
	return answer
}

func (c *client) read() dap.Message {
	c.t.Helper()
	m, err := dap.ReadProtocolMessage(c.in)
	if err != nil {
		c.t.Fatal(err)
	}
	return m
}

// event is the next event, which is a T.
func event[T dap.EventMessage](c *client) T {
	c.t.Helper()
	if len(c.events) == 0 {
		c.events = append(c.events, c.read())
	}
	m := c.events[0]
	c.events = c.events[1:]
	e, ok := m.(T)
	if !ok {
		c.t.Fatalf("%T, want %T", m, e)
	}
	return e
}

// stopped is why a thread has stopped, and where.
func (c *client) stopped() string {
	c.t.Helper()
	e := event[*dap.StoppedEvent](c)
	text := e.Body.Reason
	for _, id := range e.Body.HitBreakpointIds {
		text += fmt.Sprintf(" %d", id)
	}
	return text + ": " + c.where(e.Body.ThreadId)
}

func (c *client) where(thread int) string {
	c.t.Helper()
	frames := must[*dap.StackTraceResponse](c, "stackTrace",
		dap.StackTraceArguments{ThreadId: thread}).Body.StackFrames
	f := frames[0]
	if f.Source == nil {
		return f.Name
	}
	return fmt.Sprintf("%s %s:%d", f.Name, f.Source.Name, f.Line)
}

// launch has a client go through what comes before it moves.
func (c *client) launch(arguments any) {
	c.t.Helper()
	got := must[*dap.InitializeResponse](c, "initialize",
		dap.InitializeRequestArguments{AdapterID: "wpptrace", LinesStartAt1: true})
	if !got.Body.SupportsStepBack || !got.Body.SupportsConfigurationDoneRequest {
		c.t.Errorf("capabilities: %+v", got.Body)
	}
	must[*dap.LaunchResponse](c, "launch", arguments)
	event[*dap.InitializedEvent](c)
	must[*dap.ConfigurationDoneResponse](c, "configurationDone", nil)
}

// end has the client disconnect.
func (c *client) end() {
	c.t.Helper()
	must[*dap.DisconnectResponse](c, "disconnect", nil)
	if err := <-c.ended; err != nil {
		c.t.Error(err)
	}
}

func open(name string) (*wpp.Snapshot, error) {
	if name != "x.wpp" {
		return nil, fmt.Errorf("open %s: no such file", name)
	}
	return querytest.Variables(), nil
}

// TestDAP: a client moves both ways, from breakpoint to breakpoint and line by line, and sees what
// variables and registers have.
func TestDAP(t *testing.T) {
	c := newClient(t, &server.Server{Open: open})
	c.launch(map[string]any{"program": "x.wpp"})
	if got, want := c.stopped(), "entry: clip clip.c:2"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	breaks := must[*dap.SetBreakpointsResponse](c, "setBreakpoints", dap.SetBreakpointsArguments{
		Source:      dap.Source{Path: "/home/me/src/clip.c"},
		Breakpoints: []dap.SourceBreakpoint{{Line: 3}, {Line: 99}}}).Body.Breakpoints
	if len(breaks) != 2 || !breaks[0].Verified || breaks[1].Verified ||
		!strings.Contains(breaks[1].Message, "no routine that was traced and ran has code of that line") {
		t.Errorf("breakpoints: %+v", breaks)
	}
	routines := must[*dap.SetFunctionBreakpointsResponse](c, "setFunctionBreakpoints",
		dap.SetFunctionBreakpointsArguments{Breakpoints: []dap.FunctionBreakpoint{
			{Name: "clip"}, {Name: "nobody"}}}).Body.Breakpoints
	if len(routines) != 2 || !routines[0].Verified || routines[1].Verified {
		t.Errorf("breakpoints of routines: %+v", routines)
	}
	threads := must[*dap.ThreadsResponse](c, "threads", nil).Body.Threads
	if len(threads) != 1 || threads[0] != (dap.Thread{Id: 1, Name: "demo (4711)"}) {
		t.Errorf("threads: %+v", threads)
	}
	for _, step := range []struct{ command, granularity, want string }{
		{"continue", "", "breakpoint 1: clip clip.c:3"},
		{"continue", "", "function breakpoint 3: clip clip.c:2"},
		{"continue", "", "end of recording: clip+0xe"},
		{"continue", "", "end of recording: clip+0xe"},
		{"reverseContinue", "", "function breakpoint 3: clip clip.c:2"},
		{"stepBack", "", "breakpoint 1: clip clip.c:3"},
		{"stepBack", "instruction", "step: clip clip.c:2"},
		{"next", "instruction", "breakpoint 1: clip clip.c:3"},
		{"reverseContinue", "", "function breakpoint 3: clip clip.c:2"},
		{"reverseContinue", "", "start of recording: clip clip.c:2"},
		{"next", "", "breakpoint 1: clip clip.c:3"},
		{"stepIn", "instruction", "step: clip+0xb"},
		{"stepOut", "", "function breakpoint 3: clip clip.c:2"},
	} {
		send(c, step.command, map[string]any{"threadId": 1, "granularity": step.granularity})
		if got := c.stopped(); got != step.want {
			t.Errorf("%s: %s, want %s", step.command, got, step.want)
		}
	}
	frame := must[*dap.StackTraceResponse](c, "stackTrace",
		dap.StackTraceArguments{ThreadId: 1}).Body.StackFrames[0]
	if frame.Source.Path != "/home/me/src/clip.c" {
		t.Errorf("the source is %s", frame.Source.Path)
	}
	const want = `Locals: x=3 lost=unknown pair={count = -1, flag = 5, next = -}
Globals: five=5
Registers: rax=unknown rcx=unknown rdx=0x7000 rbx=unknown rsp=unknown rbp=unknown rsi=0x5 `
	if got := c.scopes(frame.Id); !strings.HasPrefix(got, want) {
		t.Errorf("%s, want %s", got, want)
	}
	for whole, want := range map[string]string{"pair": "count=-1 flag=5 next=unknown",
		"lost": "count=unknown flag=unknown next=unknown", "x": ""} {
		got := must[*dap.EvaluateResponse](c, "evaluate",
			dap.EvaluateArguments{Expression: whole, FrameId: frame.Id}).Body.VariablesReference
		if parts := c.variables(got); parts != want {
			t.Errorf("%s has %s, want %s", whole, parts, want)
		}
	}
	c.data(frame.Id)
	for expression, want := range map[string]string{"x": "3", "five": "5", "$rsi": "0x5",
		"$rax": "unknown", "x/7000:2": "7000: - -\n", "lost": "unknown"} {
		got := must[*dap.EvaluateResponse](c, "evaluate",
			dap.EvaluateArguments{Expression: expression}).Body.Result
		if got != want {
			t.Errorf("%s is %q, want %q", expression, got, want)
		}
	}
	c.end()
}

// data has the client stop at writes.
func (c *client) data(frame int) {
	c.t.Helper()
	x := must[*dap.DataBreakpointInfoResponse](c, "dataBreakpointInfo",
		dap.DataBreakpointInfoArguments{Name: "x", FrameId: frame}).Body
	if x.DataId != nil || !strings.Contains(x.Description, "nowhere in memory") {
		c.t.Errorf("a variable in a register is watched: %+v", x)
	}
	bytes := must[*dap.DataBreakpointInfoResponse](c, "dataBreakpointInfo",
		dap.DataBreakpointInfoArguments{Name: "7000:4", FrameId: frame}).Body
	if bytes.DataId != "7000:4" {
		c.t.Errorf("bytes are watched as %+v", bytes)
	}
	set := must[*dap.SetDataBreakpointsResponse](c, "setDataBreakpoints",
		dap.SetDataBreakpointsArguments{Breakpoints: []dap.DataBreakpoint{{DataId: "7000:4"},
			{DataId: "7000:4", AccessType: "read"}, {DataId: "nowhere"}}}).Body.Breakpoints
	if len(set) != 3 || !set[0].Verified || set[1].Verified || set[2].Verified {
		c.t.Errorf("data breakpoints: %+v", set)
	}
	send(c, "reverseContinue", map[string]any{"threadId": 1})
	if got, want := c.stopped(), "data breakpoint 5: clip+0xb"; got != want {
		c.t.Errorf("%s, want %s", got, want)
	}
	must[*dap.SetDataBreakpointsResponse](c, "setDataBreakpoints",
		dap.SetDataBreakpointsArguments{Breakpoints: []dap.DataBreakpoint{}})
	send(c, "next", map[string]any{"threadId": 1})
	c.stopped()
}

// send sends what moves.
func send(c *client, command string, arguments any) {
	c.t.Helper()
	switch command {
	case "continue":
		must[*dap.ContinueResponse](c, command, arguments)
	case "reverseContinue":
		must[*dap.ReverseContinueResponse](c, command, arguments)
	case "next":
		must[*dap.NextResponse](c, command, arguments)
	case "stepBack":
		must[*dap.StepBackResponse](c, command, arguments)
	case "stepIn":
		must[*dap.StepInResponse](c, command, arguments)
	case "stepOut":
		must[*dap.StepOutResponse](c, command, arguments)
	default:
		c.t.Fatal(command)
	}
}

// scopes are the scopes of an activation, a line each.
func (c *client) scopes(frame int) string {
	c.t.Helper()
	var lines []string
	for _, s := range must[*dap.ScopesResponse](c, "scopes",
		dap.ScopesArguments{FrameId: frame}).Body.Scopes {
		lines = append(lines, s.Name+": "+c.variables(s.VariablesReference))
	}
	return strings.Join(lines, "\n")
}

// variables are what a number stands for; 0: nothing.
func (c *client) variables(number int) string {
	c.t.Helper()
	if number == 0 {
		return ""
	}
	var list []string
	for _, v := range must[*dap.VariablesResponse](c, "variables",
		dap.VariablesArguments{VariablesReference: number}).Body.Variables {
		list = append(list, v.Name+"="+v.Value)
	}
	return strings.Join(list, " ")
}

// TestHandlesAreBounded: what is asked for again has the number that it had.
func TestHandlesAreBounded(t *testing.T) {
	c := newClient(t, &server.Server{Snapshot: querytest.Variables()})
	c.launch(nil)
	c.stopped()
	ask := func() (numbers []int) {
		frame := must[*dap.StackTraceResponse](c, "stackTrace",
			dap.StackTraceArguments{ThreadId: 1}).Body.StackFrames[0].Id
		numbers = append(numbers, frame)
		for _, s := range must[*dap.ScopesResponse](c, "scopes",
			dap.ScopesArguments{FrameId: frame}).Body.Scopes {
			numbers = append(numbers, s.VariablesReference)
		}
		for _, frame := range []int{0, frame} {
			numbers = append(numbers, must[*dap.EvaluateResponse](c, "evaluate",
				dap.EvaluateArguments{Expression: "pair", FrameId: frame}).Body.VariablesReference)
		}
		return numbers
	}
	first := ask()
	for range 3 {
		if again := ask(); !slices.Equal(again, first) {
			t.Errorf("%v, and %v when asked again", first, again)
		}
	}
	if slices.Contains(first, 0) || first[0] == first[1] {
		t.Errorf("%v", first)
	}
	c.end()
}

// TestReadMemory: bytes that are not known are said to be unreadable, and those before are given.
func TestReadMemory(t *testing.T) {
	c := newClient(t, &server.Server{Snapshot: querytest.Variables()})
	c.launch(nil)
	c.stopped()
	if x := must[*dap.EvaluateResponse](c, "evaluate",
		dap.EvaluateArguments{Expression: "x"}).Body.MemoryReference; x != "" {
		t.Errorf("x, which is in a register, is at %q", x)
	}
	send(c, "continue", map[string]any{"threadId": 1})
	if got, want := c.stopped(), "end of recording: clip+0xe"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, x := range []struct {
		offset, count, unreadable int
		data                      []byte
	}{
		{0, 4, 0, []byte{3, 0, 0, 0}}, // it has just stored its argument there
		{1, 2, 0, []byte{0, 0}},
		{4, 8, 4, []byte{0, 0, 0, 0}},
		{-2, 4, 2, []byte{}},
		{8, 8, 8, []byte{}},
		{0, 0, 0, []byte{}},
	} {
		got := must[*dap.ReadMemoryResponse](c, "readMemory", dap.ReadMemoryArguments{
			MemoryReference: "0x7000", Offset: x.offset, Count: x.count}).Body
		data, err := base64.StdEncoding.DecodeString(got.Data)
		if err != nil || !bytes.Equal(data, x.data) || got.UnreadableBytes != x.unreadable ||
			got.Address != fmt.Sprintf("%#x", 0x7000+x.offset) {
			t.Errorf("%+v: %+v", x, got)
		}
	}
	for _, wrong := range []dap.ReadMemoryArguments{{MemoryReference: "five", Count: 1},
		{MemoryReference: "0x7000", Count: -1}, {MemoryReference: "0x7000", Count: 1 << 30}} {
		if _, err := request[*dap.ReadMemoryResponse](c, "readMemory", wrong); err == nil {
			t.Errorf("%+v is answered", wrong)
		}
	}
	c.end()
}

// TestThreads: each thread has a place of its own.
func TestThreads(t *testing.T) {
	c := newClient(t, &server.Server{Snapshot: querytest.Threads(), TID: 4712})
	c.launch(nil)
	if got, want := event[*dap.StoppedEvent](c).Body.ThreadId, 2; got != want {
		t.Errorf("thread %d is shown first, want %d", got, want)
	}
	threads := must[*dap.ThreadsResponse](c, "threads", nil).Body.Threads
	if len(threads) != 2 || threads[1] != (dap.Thread{Id: 2, Name: "worker (4712)"}) {
		t.Errorf("threads: %+v", threads)
	}
	for _, step := range []struct {
		command string
		thread  int
		want    string
	}{
		{"next", 2, "step: clip clip.c:3"},
		{"continue", 1, "end of recording: clip+0xe"},
		{"stepBack", 2, "step: clip clip.c:2"},
	} {
		send(c, step.command, map[string]any{"threadId": step.thread})
		if got := c.stopped(); got != step.want {
			t.Errorf("%s: %s, want %s", step.command, got, step.want)
		}
	}
	if got := c.where(1) + c.where(2); got != "clip+0xeclip clip.c:2" {
		t.Errorf("at last they are at %s", got)
	}
	c.end()
}

// TestFault: the end of a thread that a fault ended is an exception.
func TestFault(t *testing.T) {
	c := newClient(t, &server.Server{Snapshot: querytest.Faulted()})
	c.launch(nil)
	event[*dap.StoppedEvent](c)
	send(c, "continue", map[string]any{"threadId": 1})
	e := event[*dap.StoppedEvent](c).Body
	if e.Reason != "exception" || !strings.Contains(e.Text, "SIGSEGV") {
		t.Errorf("it stops with %+v", e)
	}
	send(c, "reverseContinue", map[string]any{"threadId": 1})
	if got, want := c.stopped(), "start of recording: clip clip.c:2"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	c.end()
}

// TestRefusals: what is wrong is answered with why, and what comes next is answered as ever.
func TestRefusals(t *testing.T) {
	c := newClient(t, &server.Server{Open: open})
	refused := func(want, command string, arguments any) {
		t.Helper()
		_, err := request[*dap.PauseResponse](c, command, arguments)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", command, err, want)
		}
	}
	refused("launch has not come", "stackTrace", map[string]any{"threadId": 1})
	refused("nothing is named", "launch", map[string]any{})
	refused("no such file", "launch", map[string]any{"program": "y.wpp"})
	refused("its arguments are wrong", "launch", map[string]any{"program": 7})
	c.launch(map[string]any{"program": "x.wpp", "stopOnEntry": false})
	if got, want := c.stopped(), "end of recording: clip+0xe"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	refused("no thread 2", "continue", map[string]any{"threadId": 2})
	refused("no thread 0", "stepBack", nil)
	refused("the request is wrong", "next", map[string]any{"threadId": "one"})
	refused("stands for nothing", "scopes", map[string]any{"frameId": 400})
	refused("stands for nothing", "variables", map[string]any{"variablesReference": -1})
	refused("is not supported", "goto", map[string]any{"threadId": 1})
	refused("is not supported", "fly", nil)
	refused("no variable y", "evaluate", map[string]any{"expression": "y"})
	refused("give VARIABLE", "evaluate", nil)
	refused("no general register", "evaluate", map[string]any{"expression": "$xmm0"})
	if err := dap.WriteBaseMessage(c.conn, []byte("{")); err != nil {
		t.Fatal(err)
	}
	if _, ok := c.read().(*dap.ErrorResponse); !ok {
		t.Error("what is no JSON is not refused")
	}
	must[*dap.PauseResponse](c, "pause", map[string]any{"threadId": 1})
	c.end()
}

// TestGone: a client that goes away, in order or amid a message, ends the server.
func TestGone(t *testing.T) {
	for name, text := range map[string]string{"": "", "amid a header": "Content-Le",
		"amid a message": "Content-Length: 50\r\n\r\n{", "of another protocol": "GET / HTTP\r\n\r\n"} {
		err := (&server.Server{}).Serve(strings.NewReader(text), io.Discard)
		if (err == nil) != (text == "" || name == "amid a header") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNoValues: a snapshot of paths alone is refused.
func TestNoValues(t *testing.T) {
	c := newClient(t, &server.Server{Snapshot: &wpp.Snapshot{Threads: make([]wpp.Thread, 1)}})
	_, err := request[*dap.LaunchResponse](c, "launch", nil)
	if err == nil || !strings.Contains(err.Error(), "has no values") {
		t.Error(err)
	}
	c.end()
}

// FuzzDAP: whatever a client sends, each of its requests is answered, or the server ends.
func FuzzDAP(f *testing.F) {
	f.Add(`{"seq":1,"type":"request","command":"stackTrace","arguments":{"threadId":1}}
{"seq":2,"type":"request","command":"scopes","arguments":{"frameId":1}}
{"seq":3,"type":"request","command":"variables","arguments":{"variablesReference":2}}`)
	f.Add(`{"seq":1,"type":"request","command":"setBreakpoints","arguments":{"source":{"path":
"clip.c"},"breakpoints":[{"line":3},{"line":-1}]}}
{"seq":2,"type":"request","command":"continue","arguments":{"threadId":1}}
{"seq":3,"type":"request","command":"evaluate","arguments":{"expression":"x/ffffffffffffffff:9"}}`)
	f.Add(`{"seq":1,"type":"request","command":"stackTrace","arguments":{"threadId":1,
"startFrame":-1,"levels":-5}}
{"seq":"x","type":"request","command":"stepBack","arguments":[]}
{"type":"response","command":"next"}`)
	f.Fuzz(func(t *testing.T, text string) {
		var in, out strings.Builder
		requests := 1
		message := func(text string) {
			fmt.Fprintf(&in, "Content-Length: %d\r\n\r\n%s", len(text), text)
		}
		message(`{"seq":0,"type":"request","command":"launch"}`)
		for line := range strings.SplitSeq(text, "\n{") {
			line = "{" + strings.TrimPrefix(line, "{")
			message(line)
			var q dap.Request
			if json.Unmarshal([]byte(line), &q) == nil && q.Type == "request" {
				requests++
			}
		}
		err := (&server.Server{Snapshot: querytest.Variables(), Open: open}).Serve(
			strings.NewReader(in.String()), &out)
		if err != nil {
			t.Fatal(err)
		}
		answers, ended := 0, false
		for r := bufio.NewReader(strings.NewReader(out.String())); ; {
			m, err := dap.ReadProtocolMessage(r)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			switch m.(type) {
			case *dap.DisconnectResponse, *dap.TerminateResponse:
				ended = true
			}
			if _, ok := m.(dap.ResponseMessage); ok {
				answers++
			}
		}
		if answers < requests && !ended {
			t.Errorf("%d answers to %d requests", answers, requests)
		}
	})
}
