package valuing

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"wpptrace/compress/wpp"
	"wpptrace/internal/text"
	"wpptrace/query/names"
	"wpptrace/query/stepping"
	"wpptrace/query/valuereport"
	"wpptrace/query/values"
)

// A console answers the commands of wpptrace step, one after the other.
type console struct {
	out      *bufio.Writer
	snapshot *wpp.Snapshot
	names    *names.Names
	state    *stepping.State
	states   map[int]*stepping.State // by index of the thread: those that somebody was in
	frame    int                     // of state.Frames: what print and others are about
	listed   int                     // the last line that list has written; 0: none here
	stops    []stepping.Stop
	numbers  []int // of stops
	watches  []watch
	once     []int // numbers of the stops that are for one time
	made     int   // stops and watches
	pause    func() bool
}

// A watch is bytes that are watched.
type watch struct {
	stepping.Watch
	number int
	text   string
	asked  *values.Asked // what they are, where that is a number; nil: bytes
}

// A command is what one of some words does.
type command struct {
	words []string
	what  string // in help
	run   func(c *console, args string) error
}

var errQuit = errors.New("quit")

// moves is the command that moves, once or as often as it says. It goes on where a move ends as all
// do but the last.
func moves(way stepping.Way, goesOn stepping.End,
	move func(*stepping.State, stepping.Way) (stepping.End, error)) func(*console, string) error {
	return func(c *console, args string) error {
		times, err := timesOf(args)
		if err != nil {
			return err
		}
		end := goesOn
		for ; times > 0 && end == goesOn; times-- {
			if end, err = move(c.state, way); err != nil {
				return err
			}
		}
		return c.arrive(end)
	}
}

// timesOf is how often something is to be done.
func timesOf(args string) (times int, err error) {
	if args == "" {
		return 1, nil
	}
	if times, err = strconv.Atoi(args); err != nil || times < 1 {
		return 0, fmt.Errorf("%q is no number of times from 1", args)
	}
	return times, nil
}

// commands are those there are.
func commands() []command {
	return []command{
		{[]string{"next", "n"}, "to the next line, over calls",
			moves(stepping.Forward, stepping.Arrived, (*stepping.State).Line)},
		{[]string{"step", "s"}, "to the next line, also of a routine that is called",
			moves(stepping.Forward, stepping.Arrived, (*stepping.State).Into)},
		{[]string{"stepi", "si"}, "to the next instruction",
			moves(stepping.Forward, stepping.Arrived, (*stepping.State).Instruction)},
		{[]string{"finish", "fin"}, "to where the routine returns to",
			moves(stepping.Forward, stepping.Arrived, (*stepping.State).Out)},
		{[]string{"continue", "c"}, "to the next place of break, or the end",
			moves(stepping.Forward, stepping.Reached, (*stepping.State).Run)},
		{[]string{"reverse-next", "rn"}, "back to the line before, over calls",
			moves(stepping.Back, stepping.Arrived, (*stepping.State).Line)},
		{[]string{"reverse-step", "rs"}, "back to the line before, wherever it is",
			moves(stepping.Back, stepping.Arrived, (*stepping.State).Into)},
		{[]string{"reverse-stepi", "rsi"}, "back to the instruction before",
			moves(stepping.Back, stepping.Arrived, (*stepping.State).Instruction)},
		{[]string{"reverse-finish"}, "back to the call of the routine",
			moves(stepping.Back, stepping.Arrived, (*stepping.State).Out)},
		{[]string{"reverse-continue", "rc"}, "back to a place of break, or the start",
			moves(stepping.Back, stepping.Reached, (*stepping.State).Run)},
		{[]string{"until", "u", "advance"}, "to PLACE, as of break; alone: to a later line",
			(*console).until},
		{[]string{"goto"}, "POSITION, as watch, values and dump print it", (*console).goTo},
		{[]string{"break", "b"}, "stop at FILE:LINE, ROUTINE or ROUTINE+OFFSET", (*console).stopAt},
		{[]string{"tbreak", "tb"}, "the same, once", (*console).stopOnce},
		{[]string{"watch"}, "stop where VARIABLE or ADDRESS:SIZE is written", (*console).watch},
		{[]string{"delete", "d"}, "stop there no more: break or watch N, or all",
			(*console).deleteStop},
		{[]string{"where", "bt", "backtrace"}, "the calls that led here", (*console).where},
		{[]string{"up"}, "to the activation that called: of it are print and info",
			func(c *console, args string) error { return c.goUp(1, args) }},
		{[]string{"down"}, "to the one that it called",
			func(c *console, args string) error { return c.goUp(-1, args) }},
		{[]string{"frame", "f"}, "to activation N, as where counts them", (*console).goToFrame},
		{[]string{"info", "i"}, "locals, globals, registers: what all have; threads, break",
			(*console).info},
		{[]string{"print", "p"}, "what VARIABLE, &VARIABLE or $REGISTER has; /x: in hex, /d, /u, /t, /c",
			(*console).print},
		{[]string{"x"}, "/ADDRESS:SIZE: what memory holds; /4xw ADDRESS, /s: as gdb",
			(*console).examine},
		{[]string{"thread", "t"}, "go to thread TID, to its start or where it was left", (*console).goToThread},
		{[]string{"list", "l"}, "the source around, or around LINE; again: what follows",
			(*console).list},
		{[]string{"help", "h"}, "this", (*console).help},
		{[]string{"quit", "q"}, "end", func(*console, string) error { return errQuit }},
	}
}

func newConsole(w io.Writer, s *wpp.Snapshot) *console {
	return &console{out: bufio.NewWriter(w), snapshot: s, names: names.Of(s),
		states: map[int]*stepping.State{}}
}

// thread goes to a thread, where it was left, or to its start; 0: to the first one.
func (c *console) thread(tid int) error {
	if tid == 0 && len(c.snapshot.Threads) == 0 {
		return values.ErrNothingRan
	}
	for i := range c.snapshot.Threads {
		if t := &c.snapshot.Threads[i]; tid != 0 && t.TID != tid {
			continue
		}
		if c.states[i] == nil {
			state, err := stepping.New(c.snapshot, i)
			if tid == 0 && errors.Is(err, values.ErrNothingRan) && i+1 < len(c.snapshot.Threads) {
				continue
			}
			if err != nil {
				return err
			}
			state.Pause = c.pause
			c.states[i] = state
		}
		c.state = c.states[i]
		c.setStops(c.stops, c.numbers)
		c.setWatches(c.watches)
		return nil
	}
	return fmt.Errorf("the snapshot has no thread %d", tid)
}

// read answers the commands of an input. An empty line is the command before.
func (c *console) read(from io.Reader, prompt string) error {
	in := bufio.NewScanner(from)
	last := ""
	err := c.arrive(stepping.Arrived)
	for err == nil {
		fmt.Fprint(c.out, prompt)
		if err := c.out.Flush(); err != nil {
			return fmt.Errorf("write answers: %w", err)
		}
		if !in.Scan() {
			break
		}
		line := strings.TrimSpace(in.Text())
		if line == "" {
			line = last
		}
		if last = line; line != "" {
			err = c.do(line)
		}
	}
	if err != nil && !errors.Is(err, errQuit) {
		return err
	}
	if err := c.out.Flush(); err != nil {
		return fmt.Errorf("write answers: %w", err)
	}
	if err := in.Err(); err != nil {
		return fmt.Errorf("read commands: %w", err)
	}
	return nil
}

// do answers a command.
func (c *console) do(line string) error {
	word, args := line, ""
	if i := strings.IndexAny(line, " \t/"); i >= 0 {
		word, args = line[:i], strings.TrimSpace(line[i:])
	}
	if c.pause != nil {
		c.pause() // what came meanwhile is no wish to end this command
	}
	run, err := commandOf(word)
	if err == nil {
		err = run(c, args)
	}
	if err != nil && !errors.Is(err, errQuit) {
		fmt.Fprintf(c.out, "%s: %v\n", names.Printable(word), err)
		return nil
	}
	return err
}

// arrive writes where the state is, and why it came no further.
func (c *console) arrive(end stepping.End) error {
	c.frame, c.listed = 0, 0
	switch end {
	case stepping.Reached:
		at, err := c.state.StopsHere()
		if err != nil {
			return err
		}
		if err := c.reach(at); err != nil {
			return err
		}
	case stepping.Written:
		if err := c.showWrites(); err != nil {
			return err
		}
	case stepping.Paused:
		fmt.Fprintln(c.out, "Interrupted.")
	case stepping.Start:
		fmt.Fprintln(c.out, "The start of what was recorded of the thread.")
	case stepping.Last:
		fmt.Fprintln(c.out, "The end of what was recorded of the thread.")
	}
	if n := c.state.Unsure(); n > 0 && end != stepping.Arrived {
		fmt.Fprintf(c.out, "%s passed of which it is not known where they write.\n",
			text.Count(n, "instruction"))
	}
	fault, err := c.state.Fault()
	if err != nil {
		return err
	}
	if fault != nil {
		fmt.Fprintln(c.out, valuereport.Fault(c.snapshot, fault))
	}
	p, err := c.state.Place()
	if err != nil {
		return err
	}
	c.show(p)
	return nil
}

// show writes a place with its source line.
func (c *console) show(p stepping.Place) {
	fmt.Fprintln(c.out, c.textOf(p))
	if lines, err := c.source(p.Span); err == nil && p.Span.Line > 0 && p.Span.Line <= len(lines) {
		fmt.Fprintf(c.out, "%d\t%s\n", p.Span.Line, lines[p.Span.Line-1])
	}
}

func (c *console) toFrame(n int) error {
	frames, err := c.state.Frames()
	if err != nil {
		return err
	}
	if n < 0 || n >= len(frames) {
		return errors.New("there is none that is known")
	}
	c.frame = n
	fmt.Fprintf(c.out, "#%d  ", n)
	c.show(frames[n])
	return nil
}

// textOf is a place, and its source line if that is known.
func (c *console) textOf(p stepping.Place) string {
	at := fmt.Sprintf("%s+%#x", c.names.Routine(p.Routine),
		p.Addr-c.snapshot.Routines[p.Routine].Entry)
	if p.Span.Line == 0 {
		return at
	}
	return fmt.Sprintf("%s, %s:%d", at,
		names.Printable(path.Base(c.snapshot.Files[p.Span.File])), p.Span.Line)
}

// until runs to a place, or to a line behind the one that comes next, in the routine or its caller.
func (c *console) until(args string) error {
	if args != "" {
		stop, err := c.placeOf(args)
		if err != nil {
			return err
		}
		c.state.Stops = append(slices.Clone(c.stops), stop)
		end, err := c.state.Run(stepping.Forward)
		if err == nil {
			err = c.arrive(end)
		}
		c.state.Stops = c.stops
		return err
	}
	from, err := c.state.Frames()
	if err != nil {
		return err
	}
	for {
		end, err := c.state.Line(stepping.Forward)
		if err != nil {
			return err
		}
		to, err := c.state.Frames()
		if err != nil {
			return err
		}
		if end != stepping.Arrived || len(to) != len(from) || to[0].Routine != from[0].Routine ||
			to[0].Span.Line > from[0].Span.Line {
			return c.arrive(end)
		}
	}
}

func (c *console) goTo(args string) error {
	n, err := strconv.ParseUint(args, 10, 64)
	if err != nil {
		return fmt.Errorf("%q is no position", args)
	}
	if err := c.state.Goto(n); err != nil {
		return err
	}
	return c.arrive(stepping.Arrived)
}

func (c *console) stopAt(args string) error {
	stop, err := c.placeOf(args)
	if err != nil {
		return err
	}
	c.made++
	c.setStops(append(c.stops, stop), append(c.numbers, c.made))
	fmt.Fprintf(c.out, "Break %d at %s\n", c.made, names.Printable(stop.Text))
	return nil
}

func (c *console) deleteStop(args string) error {
	if args == "" {
		c.setStops(nil, nil)
		c.setWatches(nil)
		return nil
	}
	n, err := strconv.Atoi(args)
	if i := slices.IndexFunc(c.watches, func(w watch) bool { return w.number == n }); i >= 0 {
		c.setWatches(slices.Delete(c.watches, i, i+1))
		return nil
	}
	if n = slices.Index(c.numbers, n); err != nil || n < 0 {
		return fmt.Errorf("there is no break %s: info break lists those", names.Printable(args))
	}
	c.setStops(slices.Delete(c.stops, n, n+1), slices.Delete(c.numbers, n, n+1))
	return nil
}

func (c *console) setStops(list []stepping.Stop, numbers []int) {
	c.stops, c.state.Stops, c.numbers = list, list, numbers
}

func (c *console) where(string) error {
	frames, err := c.state.Frames()
	if err != nil {
		return err
	}
	for i, p := range frames {
		fmt.Fprintf(c.out, "#%d  %s\n", i, c.textOf(p))
	}
	return nil
}

func (c *console) info(args string) error {
	what, of, _ := strings.Cut(args, " ")
	if of = strings.TrimPrefix(strings.TrimSpace(of), "$"); of != "" &&
		strings.HasPrefix("registers", what) {
		return c.print("$" + of)
	}
	switch args {
	case "locals", "globals", "registers", "reg", "r":
		m, err := c.state.In(c.frame)
		if err != nil {
			return err
		}
		switch args {
		case "locals":
			c.variables(m, m.Locals())
		case "globals":
			c.variables(m, m.Globals())
		default:
			for n := range valuereport.Registers {
				c.register(valuereport.RegisterAt(m, n))
			}
		}
		return nil
	case "threads":
		for i := range c.snapshot.Threads {
			mark := ' '
			if i == c.state.Thread() {
				mark = '*'
			}
			t := &c.snapshot.Threads[i]
			fmt.Fprintf(c.out, "%c %d  %s\n", mark, t.TID, names.Printable(t.Name))
		}
		return nil
	case "break", "breakpoints", "b", "watchpoints":
		for i := range c.stops {
			fmt.Fprintf(c.out, "%d  %s\n", c.numbers[i], names.Printable(c.stops[i].Text))
		}
		for _, w := range c.watches {
			fmt.Fprintf(c.out, "%d  watch %s\n", w.number, names.Printable(w.text))
		}
		return nil
	}
	return errors.New("give locals, which has the arguments, too, globals, registers, threads or " +
		"break")
}

func (c *console) register(name, text string) { fmt.Fprintf(c.out, "%-6s  %s\n", name, text) }

func (c *console) variables(m *stepping.Moment, list []*values.Asked) {
	for _, a := range list {
		fmt.Fprintf(c.out, "%s = %s\n", names.Printable(a.String()), valuereport.TextAt(m, a))
	}
}

func (c *console) goToThread(args string) error {
	tid, err := strconv.Atoi(args)
	if err != nil || tid < 1 {
		return fmt.Errorf("%q is no id of a thread: info threads lists those", args)
	}
	if err := c.thread(tid); err != nil {
		return err
	}
	return c.arrive(stepping.Arrived)
}

// around is how many lines of source list writes before and behind.
const around = 5

// list writes the source around a line, that which comes next if none is given; once more, what
// follows.
func (c *console) list(args string) error {
	frames, err := c.state.Frames()
	if err != nil {
		return err
	}
	p := frames[c.frame]
	if p.Span.Line == 0 {
		return errors.New("the source line is not known")
	}
	lines, err := c.source(p.Span)
	if err != nil {
		return err
	}
	first := p.Span.Line - around
	if args != "" {
		n, err := strconv.Atoi(args)
		if err != nil || n < 1 || n > len(lines) {
			return fmt.Errorf("%q is no line of %d", args, len(lines))
		}
		first = n - around
	} else if c.listed > 0 {
		first = c.listed + 1
	}
	if first > len(lines) {
		return errors.New("that was the last line")
	}
	for n := max(1, first); n <= min(len(lines), first+2*around); n++ {
		fmt.Fprintf(c.out, "%d\t%s\n", n, lines[n-1])
		c.listed = n
	}
	return nil
}

// largestSource is how long a file is, at most, that source reads.
const largestSource = 16 << 20

// source returns the lines of the file of a span.
func (c *console) source(span wpp.Span) ([]string, error) {
	if span.Line == 0 {
		return nil, nil
	}
	name := c.snapshot.Files[span.File]
	st, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() || st.Size() > largestSource {
		return nil, fmt.Errorf("read %s: it is no source file", names.Printable(name))
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	text := strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return '?' // it could be an order to the terminal
		}
		return r
	}, string(data))
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n"), nil
}

func (c *console) help(string) error {
	for _, known := range commands() {
		fmt.Fprintf(c.out, "%-24s %s\n", strings.Join(known.words, ", "), known.what)
	}
	fmt.Fprintln(c.out, "An empty line is the command before, once more.")
	return nil
}
