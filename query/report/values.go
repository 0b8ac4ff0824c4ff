package report

import (
	"bufio"
	"math"
	"slices"
	"strconv"

	"wpptrace/compress/wet"
	"wpptrace/compress/wpp"
	"wpptrace/query/internal/stream"
	"wpptrace/query/values"
)

// writeValues writes a line for each instruction that a thread executed, and its marks.
func writeValues(out *bufio.Writer, s *wpp.Snapshot, t *wpp.Thread,
	appendTo func([]byte, *wet.Executed) []byte) error {
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
		line = append(line, Field(s.Images[s.Routines[e.Routine].Image].Base())...)
		line = strconv.AppendUint(append(line, ' '), e.Addr, 16)
		line = append(appendTo(line, e), '\n')
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
