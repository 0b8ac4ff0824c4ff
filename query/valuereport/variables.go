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
			called[t.Variable], ValueText(t.Variable, t.Value, t.Known))
		return err
	})
	return flushed(out, err)
}

// ValueText is what a variable has as its type has it, ? behind it where it is not confirmed; -: it
// is not known.
func ValueText(v *variables.Variable, value uint64, k machine.Knowledge) string {
	text := ""
	switch {
	case k == machine.Unknown:
		return "-"
	case v.Type == variables.Signed:
		unused := 64 - 8*v.Size
		text = strconv.FormatInt(int64(value)<<unused>>unused, 10)
	case v.Type == variables.Pointer:
		text = "0x" + strconv.FormatUint(value, 16)
	case v.Type == variables.Float && v.Size == 4:
		text = strconv.FormatFloat(float64(math.Float32frombits(uint32(value))), 'g', -1, 32)
	case v.Type == variables.Float:
		text = strconv.FormatFloat(math.Float64frombits(value), 'g', -1, 64)
	default:
		text = strconv.FormatUint(value, 10)
	}
	if k != machine.Confirmed {
		text += "?"
	}
	return text
}
