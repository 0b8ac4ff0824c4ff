package valuereport

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wpp"
	"wpptrace/query/executed"
	"wpptrace/query/names"
	"wpptrace/query/report"
	"wpptrace/query/values"
)

// WriteInstances writes a line for each instruction of the executions that are asked for: the
// number of the execution, the thread, the position in the stream, the instruction, and what
// it wrote and accessed, as a dump of values has it. Where there are none it writes nothing,
// and fails, as all of these do.
func WriteInstances(w io.Writer, s *wpp.Snapshot, q *values.Question) error {
	out := bufio.NewWriter(w)
	head := "INSTANCE THREAD POSITION INSTRUCTION VALUES\n"
	err := values.Each(s, q, func(n uint64, e *wet.Executed) error {
		out.WriteString(head)
		head = ""
		line := fmt.Appendf(nil, "%d %d %d %s", n, e.TID, e.Symbol, placeOf(s, e))
		_, err := out.Write(append(executed.Append(line, e), '\n'))
		return err
	})
	return flushed(out, err)
}

func placeOf(s *wpp.Snapshot, e *wet.Executed) string {
	r := &s.Routines[e.Routine]
	return fmt.Sprintf("%s+%#x", report.Field(names.Printable(r.Name)), e.Addr-r.Entry)
}

func flushed(out *bufio.Writer, err error) error {
	if wrong := out.Flush(); wrong != nil {
		return errors.Join(err, fmt.Errorf("write values: %w", wrong))
	}
	return err
}

// ValuesJSON is what values --at --json prints: executions of some instructions.
type ValuesJSON struct {
	SchemaVersion int    `json:"schema_version"`
	At            string `json:"at"` // as it was asked for
	// threads one after the other, in execution order
	Instances []InstanceJSON `json:"instances"`
}

// An InstanceJSON is an instruction of an execution.
type InstanceJSON struct {
	Instance uint64 `json:"instance"` // the number of the execution that it is part of, from 1
	Thread   int    `json:"thread"`   // id
	// in the thread's stream of paths and marks
	Position uint64         `json:"position"`
	Routine  string         `json:"routine"`  // as the program file has it
	Address  string         `json:"address"`  // link-time, in hex
	Written  []RegisterJSON `json:"written"`  // general registers
	Accesses []AccessJSON   `json:"accesses"` // to memory
}

// A RegisterJSON is a general register that an instruction wrote.
type RegisterJSON struct {
	Register  string  `json:"register"`  // by its name of 64 bits
	Value     *string `json:"value"`     // in hex; null: it is not known
	Confirmed bool    `json:"confirmed"` // what was seen later agrees with it
}

// An AccessJSON is one of an instruction to memory.
type AccessJSON struct {
	Write     bool    `json:"write"`     // else it read
	Address   *string `json:"address"`   // in the process, in hex
	Size      *int    `json:"size"`      // bytes
	Value     *string `json:"value"`     // the number that the bytes are, in hex
	Confirmed bool    `json:"confirmed"` // what was seen later agrees with it
}

// WriteInstancesJSON writes the executions as a ValuesJSON, on a line. It keeps none of them.
func WriteInstancesJSON(w io.Writer, s *wpp.Snapshot, q *values.Question) error {
	name, err := report.Marshal(q.Where.Text)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	separator := fmt.Sprintf(`{"schema_version":%d,"at":%s,"instances":[`, report.SchemaVersion, name)
	err = values.Each(s, q, func(n uint64, e *wet.Executed) error {
		text, err := report.Marshal(instance(s, n, e))
		if err == nil {
			_, err = fmt.Fprintf(out, "%s%s", separator, text)
		}
		separator = ","
		return err
	})
	if err == nil {
		out.WriteString("]}\n")
	}
	return flushed(out, err)
}

func instance(s *wpp.Snapshot, n uint64, e *wet.Executed) InstanceJSON {
	x := InstanceJSON{Instance: n, Thread: e.TID, Position: e.Symbol,
		Routine: s.Routines[e.Routine].Name, Address: hex(e.Addr)}
	x.Written, x.Accesses = computedJSON(e)
	return x
}

// computedJSON is what an instruction wrote to registers, and accessed.
func computedJSON(e *wet.Executed) (written []RegisterJSON, accesses []AccessJSON) {
	written, accesses = []RegisterJSON{}, []AccessJSON{}
	for _, r := range e.Written {
		w := RegisterJSON{Register: executed.RegisterName(r.Number),
			Confirmed: r.Known == machine.Confirmed}
		if r.Known != machine.Unknown {
			w.Value = new(hex(r.Value))
		}
		written = append(written, w)
	}
	for i := range e.Accesses {
		accesses = append(accesses, accessJSON(&e.Accesses[i]))
	}
	return written, accesses
}

func accessJSON(a *machine.Access) AccessJSON {
	w := AccessJSON{Write: a.Write}
	if a.Size != 0 {
		w.Size = new(a.Size)
	}
	if a.At != machine.Unknown {
		w.Address = new(hex(a.Addr))
	}
	if number, k := contents(a); k != machine.Unknown {
		w.Value, w.Confirmed = &number, k == machine.Confirmed
	}
	return w
}

// contents is what an access read or wrote, in hex.
func contents(a *machine.Access) (number string, k machine.Knowledge) {
	if k = executed.Sureness(a); k == machine.Unknown {
		return "", k
	}
	return string(executed.AppendNumber(nil, a.Data())), k
}

// WriteInstancesCSV writes a row for each value of the executions, under a heading.
func WriteInstancesCSV(w io.Writer, s *wpp.Snapshot, q *values.Question) error {
	out := csv.NewWriter(w)
	rows := [][]string{{"instance", "thread", "position", "routine", "address", "what", "value",
		"known"}}
	err := values.Each(s, q, func(n uint64, e *wet.Executed) error {
		first := []string{strconv.FormatUint(n, 10), strconv.Itoa(e.TID),
			strconv.FormatUint(e.Symbol, 10), s.Routines[e.Routine].Name, hex(e.Addr)}
		for what, v := range valuesOf(e) {
			rows = append(rows, append(slices.Clip(first), what, v.text, v.sure))
		}
		err := out.WriteAll(rows)
		rows = rows[:0]
		return err
	})
	if err != nil {
		return err
	}
	if err := out.WriteAll(rows); err != nil {
		return fmt.Errorf("write values: %w", err)
	}
	return nil
}

// A shown value is one as it is printed.
type shown struct{ text, sure string }

// valuesOf are the values of an execution, by what they are of: a register, or "r" and "w" for what
// was read from memory and written there, with the address.
func valuesOf(e *wet.Executed) func(yield func(what string, v shown) bool) {
	return func(yield func(string, shown) bool) {
		for _, r := range e.Written {
			if !yield(executed.RegisterName(r.Number), show(hex(r.Value), r.Known)) {
				return
			}
		}
		for i := range e.Accesses {
			a := &e.Accesses[i]
			number, k := contents(a)
			if !yield(string(executed.AppendPlace(nil, a)[1:]), show(number, k)) {
				return
			}
		}
	}
}

func show(text string, k machine.Knowledge) shown {
	switch k {
	case machine.Unknown:
		return shown{"", "unknown"}
	case machine.Confirmed:
		return shown{text, "confirmed"}
	}
	return shown{text, "unconfirmed"}
}

func hex(n uint64) string { return strconv.FormatUint(n, 16) }

// WriteHistogram writes how often each value came, of each instruction and register, and of what it
// read and wrote.
func WriteHistogram(w io.Writer, s *wpp.Snapshot, q *values.Question) error {
	h := newHistogram()
	err := values.Each(s, q, func(_ uint64, e *wet.Executed) error {
		for what, v := range valuesOf(e) {
			if place := strings.IndexByte(what, '['); place > 0 { // of memory: wherever it is
				what = what[:place]
			}
			h.count(placeOf(s, e)+" "+what, cmp.Or(v.text, "-"))
		}
		return nil
	})
	return h.write(w, err)
}
