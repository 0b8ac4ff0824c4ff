package valuereport

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"path"
	"strconv"

	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/variables"
	"wpptrace/query/names"
	"wpptrace/query/report"
	"wpptrace/query/values"
)

// WriteVariables writes a line for each value that the variables of a name take, of the threads
// with these ids, or of all: see values.VariablesNamed and values.EachTaken.
func WriteVariables(w io.Writer, s *wpp.Snapshot, name string, tids []int) error {
	list, err := values.VariablesNamed(s, name)
	if err != nil {
		return err
	}
	called := map[*variables.Variable]string{}
	for _, v := range list {
		called[v] = report.Field(names.Printable(v.Name))
		if v.Routine != variables.Global {
			called[v] = report.Field(names.Plain(&s.Routines[v.Routine])) + "." + called[v]
		}
	}
	out := bufio.NewWriter(w)
	fmt.Fprintln(out, "INSTANCE THREAD POSITION LINE VARIABLE VALUE")
	err = values.EachTaken(s, list, tids, func(t *values.Taken) error {
		instance := "-"
		if t.Instance > 0 {
			instance = strconv.FormatUint(t.Instance, 10)
		}
		at := "-"
		b := t.Before
		if x := values.SpanOf(&s.Routines[b.Routine].Blocks[b.Block], b.Insn); x.Line > 0 {
			at = fmt.Sprintf("%s:%d",
				report.Field(names.Printable(path.Base(s.Files[x.File]))), x.Line)
		}
		_, err := fmt.Fprintf(out, "%s %d %d %s %s %s\n", instance, t.TID, b.Symbol, at,
			called[t.Variable], valueText(t))
		return err
	})
	return flushed(out, err)
}

// valueText is a value as its type has it, ? behind it where it is not confirmed; -: it is not
// known.
func valueText(t *values.Taken) string {
	v, text := t.Variable, ""
	switch {
	case t.Known == machine.Unknown:
		return "-"
	case v.Type == variables.Signed:
		unused := 64 - 8*v.Size
		text = strconv.FormatInt(int64(t.Value)<<unused>>unused, 10)
	case v.Type == variables.Pointer:
		text = "0x" + strconv.FormatUint(t.Value, 16)
	case v.Type == variables.Float && v.Size == 4:
		text = strconv.FormatFloat(float64(math.Float32frombits(uint32(t.Value))), 'g', -1, 32)
	case v.Type == variables.Float:
		text = strconv.FormatFloat(math.Float64frombits(t.Value), 'g', -1, 64)
	default:
		text = strconv.FormatUint(t.Value, 10)
	}
	if t.Known != machine.Confirmed {
		text += "?"
	}
	return text
}
