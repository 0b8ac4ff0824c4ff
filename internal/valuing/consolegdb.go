package valuing

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"wpptrace/query/names"
	"wpptrace/query/stepping"
	"wpptrace/query/valuereport"
)

// instead says what there is in place of commands that debuggers have.
var instead = []struct{ words, what string }{
	{"display undisplay tui layout", "nothing is printed at each stop but the line: print VARIABLE or " +
		"info locals do so, and an empty line the same once more"},
	{"condition ignore commands", "a break has no condition: wpptrace values --var and --at list " +
		"what had which value, and goto POSITION goes there"},
	{"run r start starti", "the program has run: goto 0 is where the recording begins"},
	{"set call jump j return signal", "what has run is not changed"},
	{"ptype whatis explore", "types are not printed: print VARIABLE has the fields"},
	{"disassemble disas", "wpptrace dump --as values lists the instructions that ran; stepi goes by " +
		"them"},
	{"nexti ni reverse-nexti rni", "stepi and reverse-stepi go by instruction, into calls, too; " +
		"finish goes out of them"},
	{"rwatch awatch", "watch stops at writes; wpptrace watch lists who read, too"},
	{"catch handle", "a move ends at the fault that ended the process"},
	{"enable disable", "delete N takes a break away, and break sets it again"},
	{"record checkpoint restart", "all is recorded: rn, rs and rc go back"},
	{"attach detach file target kill", "it goes through a recording alone"},
}

// commandOf is what a word does, or the first letters of one word.
func commandOf(word string) (run func(*console, string) error, err error) {
	begin := 0
	for _, known := range commands() {
		if slices.Contains(known.words, word) {
			return known.run, nil
		}
		if slices.ContainsFunc(known.words, func(s string) bool {
			return strings.HasPrefix(s, word)
		}) {
			run = known.run
			begin++
		}
	}
	for _, x := range instead {
		if slices.Contains(strings.Fields(x.words), word) {
			return nil, errors.New("there is no such command: " + x.what)
		}
	}
	if begin != 1 {
		return nil, errors.New("no such command: help lists all")
	}
	return run, nil
}

// reach writes which stops the state has come to, by their indices, and deletes those of one time.
func (c *console) reach(stops []int) error {
	var past []int
	for _, n := range stops {
		if n == len(c.numbers) { // that of until
			continue
		}
		fmt.Fprintf(c.out, "Break %d at %s\n", c.numbers[n], names.Printable(c.stops[n].Text))
		if slices.Contains(c.once, c.numbers[n]) {
			past = append(past, c.numbers[n])
		}
	}
	for _, number := range past {
		if err := c.deleteStop(strconv.Itoa(number)); err != nil {
			return err
		}
	}
	return nil
}

func (c *console) stopOnce(args string) error {
	err := c.stopAt(args)
	if err == nil {
		c.once = append(c.once, c.made)
	}
	return err
}

// placeOf is the place that a text stands for: see stepping.StopAt; LINE is one of the file of the
// line that comes next.
func (c *console) placeOf(text string) (stop stepping.Stop, err error) {
	if text == "" {
		return stop, errors.New("give FILE:LINE, LINE, ROUTINE or ROUTINE+OFFSET")
	}
	if _, _, has := strings.Cut(text, " if "); has {
		return stop, errors.New("a break has no condition: wpptrace values --var and --at list what " +
			"had which value, and goto POSITION goes there")
	}
	if _, err := strconv.ParseUint(text, 10, 31); err == nil {
		frames, err := c.state.Frames()
		if err != nil {
			return stop, err
		}
		if span := frames[c.frame].Span; span.Line > 0 {
			text = path.Base(c.snapshot.Files[span.File]) + ":" + text
		}
	}
	return stepping.StopAt(c.snapshot, text)
}

// goUp goes along the calls, once or as often as it says; by is 1 or -1.
func (c *console) goUp(by int, args string) error {
	times, err := timesOf(args)
	if err != nil {
		return err
	}
	return c.toFrame(c.frame + by*min(times, 1<<20))
}

func (c *console) goToFrame(args string) error {
	if args == "" {
		return c.toFrame(c.frame)
	}
	n, err := strconv.Atoi(args)
	if err != nil {
		return fmt.Errorf("%q is no number of an activation: where counts them", args)
	}
	return c.toFrame(n)
}

func (c *console) print(args string) error {
	m, err := c.state.In(c.frame)
	if err != nil {
		return err
	}
	form, of := valuereport.Typed, args
	if letters, ok := strings.CutPrefix(args, "/"); ok {
		letters, of, _ = strings.Cut(letters, " ")
		if form, err = valuereport.ParseForm(letters); err != nil {
			return err
		}
		of = strings.TrimSpace(of)
	}
	if of == "" {
		return errors.New("give VARIABLE, &VARIABLE or $REGISTER")
	}
	text, err := valuereport.Evaluate(m, of, form)
	if err == nil {
		fmt.Fprintf(c.out, "%s = %s\n", names.Printable(of), text)
	}
	return err
}

// examine writes what memory holds: ADDRESS:SIZE, or as gdb is asked, COUNT, form and unit and then
// an address.
func (c *console) examine(args string) error {
	m, err := c.state.In(c.frame)
	if err != nil {
		return err
	}
	units, place, isUnits := strings.Cut(strings.TrimPrefix(args, "/"), " ")
	if !isUnits {
		addr, size, err := valuereport.ParseBytes(m, units)
		if err == nil {
			fmt.Fprint(c.out, valuereport.BytesAt(m, addr, size))
		}
		return err
	}
	of, err := valuereport.ParseUnits(units)
	if err != nil {
		return err
	}
	addr, err := valuereport.AddressAt(m, strings.TrimSpace(place))
	if err == nil {
		fmt.Fprint(c.out, valuereport.UnitsAt(m, addr, of))
	}
	return err
}
