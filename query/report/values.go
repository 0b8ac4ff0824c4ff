package report

import (
	"bufio"
	"math"
	"slices"
	"strconv"

	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wpp"
	"wpptrace/query/internal/stream"
	"wpptrace/query/values"
)

// generalNames are those of the general registers by their hardware numbers.
var generalNames = [16]string{"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9",
	"r10", "r11", "r12", "r13", "r14", "r15"}

// writeValues writes a line for each instruction that a thread executed, and its marks.
func writeValues(out *bufio.Writer, s *wpp.Snapshot, t *wpp.Thread) error {
	thread := slices.IndexFunc(s.Threads, func(o wpp.Thread) bool { return o.Grammar == t.Grammar })
	tid := strconv.Itoa(t.TID)
	marks := stream.New(t.Grammar)
	var line []byte
	for e, err := range values.Instructions(s, thread) {
		if err != nil {
			return err
		}
		writeMarks(out, s, marks, e.Symbol)
		line = append(append(line[:0], tid...), ' ')
		line = append(line, field(s.Images[s.Routines[e.Routine].Image].Base())...)
		line = strconv.AppendUint(append(line, ' '), e.Addr, 16)
		line = append(appendValues(line, e), '\n')
		if _, err := out.Write(line); err != nil {
			return err
		}
	}
	writeMarks(out, s, marks, math.MaxUint64)
	return nil
}

// writeMarks writes the marks of a stream up to a position.
func writeMarks(out *bufio.Writer, s *wpp.Snapshot, stream *stream.Cursor, to uint64) {
	for stream.Position() < to {
		sym, ok := stream.Next()
		if !ok {
			return
		}
		if p := &s.Symbols[sym]; p.IsMark {
			out.Write(appendMark(nil, p.Mark, p.N)) // the writer remembers errors
		}
	}
}

func appendValues(line []byte, e *wet.Executed) []byte {
	for _, r := range e.Written {
		line = append(append(append(line, ' '), generalNames[r.Number&15]...), '=')
		if r.Known == machine.Unknown {
			line = append(line, '-')
			continue
		}
		line = appendSure(strconv.AppendUint(line, r.Value, 16), r.Known)
	}
	for i := range e.Accesses {
		line = appendAccess(line, &e.Accesses[i])
	}
	return line
}

func appendAccess(line []byte, a *machine.Access) []byte {
	line = append(appendPlace(line, a), '=')
	k := sureness(a)
	if k == machine.Unknown {
		return append(line, '-')
	}
	return appendSure(appendNumber(line, a.Data()), k)
}

// appendPlace writes which way memory is accessed, and where.
func appendPlace(line []byte, a *machine.Access) []byte {
	way := " r["
	if a.Write {
		way = " w["
	}
	line = append(line, way...)
	if a.At == machine.Unknown {
		line = append(line, '-')
	} else {
		line = strconv.AppendUint(line, a.Addr, 16)
	}
	line = append(line, ':')
	if a.Size == 0 {
		line = append(line, '-')
	} else {
		line = strconv.AppendInt(line, int64(a.Size), 10)
	}
	return append(line, ']')
}

// sureness is how sure it is what an access read or wrote, and where.
func sureness(a *machine.Access) machine.Knowledge {
	switch {
	case a.Size == 0:
		return machine.Unknown
	case a.At != machine.Confirmed:
		return a.Known & machine.Unconfirmed
	}
	return a.Known
}

const digits = "0123456789abcdef"

// appendNumber writes the number that bytes are in memory.
func appendNumber(line []byte, b []byte) []byte {
	n := len(b)
	for n > 1 && b[n-1] == 0 {
		n--
	}
	line = strconv.AppendUint(line, uint64(b[n-1]), 16)
	for n--; n > 0; n-- {
		line = append(line, digits[b[n-1]>>4], digits[b[n-1]&15])
	}
	return line
}

func appendSure(line []byte, k machine.Knowledge) []byte {
	if k != machine.Confirmed {
		line = append(line, '?')
	}
	return line
}
