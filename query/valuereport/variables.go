package valuereport

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"

	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/variables"
	"wpptrace/query/names"
	"wpptrace/query/report"
	"wpptrace/query/values"
)

// A VariableQuestion asks for the values that variables take.
type VariableQuestion struct {
	Text     string // as it was asked
	Asked    []*values.Asked
	Threads  []int  // ids; none: all
	Instance uint64 // the activation of the routine; 0: all

	called map[*values.Asked]string // with the name of its routine
}

// each gives each value that is asked for to found.
func (q *VariableQuestion) each(s *wpp.Snapshot, found func(*values.Taken) error) error {
	q.call(s)
	return values.EachTaken(s, q.Asked, q.Threads, func(t *values.Taken) error {
		if q.Instance != 0 && t.Instance != q.Instance {
			return nil
		}
		return found(t)
	})
}

// call gives each variable its name. Where several have one, the line of the declaration is behind
// it.
func (q *VariableQuestion) call(s *wpp.Snapshot) {
	q.called = map[*values.Asked]string{}
	lines := map[string]map[int]bool{}
	for _, a := range q.Asked {
		name := nameOf(s, a)
		if q.called[a] = name; lines[name] == nil {
			lines[name] = map[int]bool{}
		}
		lines[name][a.Variable.Line] = true
	}
	for a, name := range q.called {
		if len(lines[name]) > 1 {
			q.called[a] = fmt.Sprintf("%s:%d", name, a.Variable.Line)
		}
	}
}

// nameOf is a variable's name with that of its routine before it, or of that which is inlined.
func nameOf(s *wpp.Snapshot, a *values.Asked) string {
	text := report.Field(names.Printable(a.String()))
	switch v := a.Variable; {
	case v.Inlined != "":
		return report.Field(names.Printable(v.Inlined)) + "." + text
	case v.Routine != variables.Global:
		return report.Field(names.Plain(&s.Routines[v.Routine])) + "." + text
	}
	return text
}

// sourceOf is where the instruction is before which a variable has a value; the line is 0 if that
// is not known.
func sourceOf(s *wpp.Snapshot, t *values.Taken) (file string, line int) {
	x := values.SpanOf(&s.Routines[t.Place.Routine].Blocks[t.Block], t.Insn)
	if x.Line == 0 {
		return "", 0
	}
	return s.Files[x.File], x.Line
}

// WriteVariables writes a line for each value that is asked for: see values.EachTaken.
func WriteVariables(w io.Writer, s *wpp.Snapshot, q *VariableQuestion) error {
	out := bufio.NewWriter(w)
	fmt.Fprintln(out, "INSTANCE THREAD POSITION LINE VARIABLE VALUE")
	err := q.each(s, func(t *values.Taken) error {
		instance := "-"
		if t.Instance > 0 {
			instance = strconv.FormatUint(t.Instance, 10)
		}
		at := "-"
		if file, line := sourceOf(s, t); line > 0 {
			at = fmt.Sprintf("%s:%d", report.Field(names.Printable(path.Base(file))), line)
		}
		_, err := fmt.Fprintf(out, "%s %d %d %s %s %s\n", instance, t.TID, t.Symbol, at,
			q.called[t.Asked], ValueText(t.Asked, t.Value, t.Known))
		return err
	})
	return flushed(out, err)
}

// ValueText is what a number has as its type has it, ? behind it where it is not confirmed; -: it
// is not known.
func ValueText(a *values.Asked, value uint64, k machine.Knowledge) string {
	return sure(plainText(a, value), k)
}

// plainText is a number as its type has it: a name if that has one, a character behind its code.
func plainText(a *values.Asked, value uint64) string {
	t := a.Kind()
	unused := 64 - a.Bits()
	for _, x := range t.Names {
		if uint64(x.Value)<<unused == value<<unused {
			return names.Printable(x.Name)
		}
	}
	signed := strconv.FormatInt(int64(value)<<unused>>unused, 10)
	switch t.Kind {
	case variables.Signed:
		return signed
	case variables.SignedChar:
		return signed + character(value)
	case variables.Char:
		return strconv.FormatUint(value, 10) + character(value)
	case variables.Bool:
		if value <= 1 {
			return strconv.FormatBool(value == 1)
		}
	case variables.Pointer:
		return "0x" + strconv.FormatUint(value, 16)
	case variables.Float:
		if t.Size == 4 {
			return strconv.FormatFloat(float64(math.Float32frombits(uint32(value))), 'g', -1, 32)
		}
		return strconv.FormatFloat(math.Float64frombits(value), 'g', -1, 64)
	}
	return strconv.FormatUint(value, 10)
}

// character is one that is printed as it is, behind its code.
func character(code uint64) string {
	if code < ' ' || code > '~' {
		return ""
	}
	return fmt.Sprintf(" '%c'", rune(code))
}

// VariablesJSON is what values --var --json prints: the values that a variable took.
type VariablesJSON struct {
	SchemaVersion int    `json:"schema_version"`
	Variable      string `json:"var"` // as it was asked for
	// threads one after the other, in execution order
	Values []TakenJSON `json:"values"`
}

// A TakenJSON is a value that a variable took.
type TakenJSON struct {
	// the number of the activation of the routine, from 1; null: of a global variable, or where the
	// recording began amid it
	Instance *uint64 `json:"instance"`
	Thread   int     `json:"thread"` // id
	// in the thread's stream of paths and marks
	Position uint64  `json:"position"`
	Variable string  `json:"variable"` // with the name of its routine, or its own alone
	Routine  string  `json:"routine"`  // that runs, as the program file has it
	Address  string  `json:"address"`  // of the instruction before which it has it, link-time, hex
	File     *string `json:"file"`     // of that instruction; null: it is not known
	Line     *int    `json:"line"`     // of that instruction; null: it is not known
	Value    *string `json:"value"`    // as its type has it; null: it is not known
	// its bytes as a number without a sign, in hex; null: it is not known
	Bits      *string `json:"bits"`
	Confirmed bool    `json:"confirmed"` // what was seen later agrees with it
}

// WriteVariablesJSON writes the values as a VariablesJSON, on a line. It keeps none of them.
func WriteVariablesJSON(w io.Writer, s *wpp.Snapshot, q *VariableQuestion) error {
	name, err := report.Marshal(q.Text)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, `{"schema_version":%d,"var":%s,"values":[`, report.SchemaVersion, name)
	separator := ""
	err = q.each(s, func(t *values.Taken) error {
		text, err := report.Marshal(q.takenJSON(s, t))
		if err == nil {
			_, err = fmt.Fprintf(out, "%s%s", separator, text)
		}
		separator = ","
		return err
	})
	out.WriteString("]}\n")
	return flushed(out, err)
}

func (q *VariableQuestion) takenJSON(s *wpp.Snapshot, t *values.Taken) TakenJSON {
	x := TakenJSON{Thread: t.TID, Position: t.Symbol, Variable: q.called[t.Asked],
		Routine: s.Routines[t.Place.Routine].Name, Address: hex(t.Addr),
		Confirmed: t.Known == machine.Confirmed}
	if t.Instance > 0 {
		x.Instance = &t.Instance
	}
	if file, line := sourceOf(s, t); line > 0 {
		x.File, x.Line = &file, &line
	}
	if t.Known != machine.Unknown {
		x.Value, x.Bits = new(plainText(t.Asked, t.Value)), new(hex(t.Value))
	}
	return x
}

// WriteVariablesCSV writes a row for each of the values, under a heading.
func WriteVariablesCSV(w io.Writer, s *wpp.Snapshot, q *VariableQuestion) error {
	out := csv.NewWriter(w)
	rows := [][]string{{"instance", "thread", "position", "variable", "routine", "address", "file",
		"line", "value", "known"}}
	err := q.each(s, func(t *values.Taken) error {
		x := q.takenJSON(s, t)
		row := []string{"", strconv.Itoa(x.Thread), strconv.FormatUint(x.Position, 10), x.Variable,
			x.Routine, x.Address, "", ""}
		if x.Instance != nil {
			row[0] = strconv.FormatUint(*x.Instance, 10)
		}
		if x.Line != nil {
			row[6], row[7] = *x.File, strconv.Itoa(*x.Line)
		}
		v := show(plainText(t.Asked, t.Value), t.Known)
		rows = append(rows, append(row, v.text, v.sure))
		err := out.WriteAll(rows)
		rows = rows[:0]
		return err
	})
	if err = errors.Join(err, out.WriteAll(rows)); err != nil {
		return fmt.Errorf("write values: %w", err)
	}
	return nil
}

// WriteVariablesHistogram writes how often each variable took each value: how often it changed to
// it, or had it first.
func WriteVariablesHistogram(w io.Writer, s *wpp.Snapshot, q *VariableQuestion) error {
	h := newHistogram()
	err := q.each(s, func(t *values.Taken) error {
		text := "-"
		if t.Known != machine.Unknown {
			text = plainText(t.Asked, t.Value)
		}
		h.count(q.called[t.Asked], text)
		return nil
	})
	return h.write(w, err)
}

// A histogram counts values of some things.
type histogram struct {
	counts map[string]map[string]uint64
	order  []string
}

func newHistogram() *histogram { return &histogram{counts: map[string]map[string]uint64{}} }

func (h *histogram) count(of, value string) {
	if h.counts[of] == nil {
		h.counts[of] = map[string]uint64{}
		h.order = append(h.order, of)
	}
	h.counts[of][value]++
}

// mostValues is how many values a histogram lists of each thing.
const mostValues = 20

// write writes it, unless there was an error.
func (h *histogram) write(w io.Writer, err error) error {
	out := bufio.NewWriter(w)
	for _, of := range h.order {
		counts, total := h.counts[of], uint64(0)
		for _, n := range counts {
			total += n
		}
		fmt.Fprintf(out, "%s: %d times, %d values\n", of, total, len(counts))
		list := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
			return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(len(a), len(b)),
				cmp.Compare(a, b))
		})
		for _, v := range list[:min(mostValues, len(list))] {
			n := counts[v]
			fmt.Fprintf(out, "%8d %6.2f%%  %s\n", n, 100*float64(n)/float64(total), v)
		}
	}
	return flushed(out, err)
}
