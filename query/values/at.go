package values

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"wpptrace/compress/wet"
	"wpptrace/compress/wpp"
	"wpptrace/query"
	"wpptrace/query/names"
	"wpptrace/query/profile"
)

// Places are the instructions that a text stands for: FILE:LINE all of a source line, also those
// that are inlined elsewhere; ROUTINE+OFFSET one, by its distance from the routine's entry, bytes
// in hex; ROUTINE its first. They are in the order of their addresses. It
// fails where there is none in a routine that ran.
func Places(s *wpp.Snapshot, text string) (list []Instruction, err error) {
	defer wpp.Recover(&err)
	file, number, ok := cutLast(text, ':')
	if line, err := strconv.Atoi(number); ok && err == nil {
		return ofLine(s, file, line)
	}
	name, offset := text, uint64(0)
	if before, behind, ok := cutLast(text, '+'); ok {
		n, err := strconv.ParseUint(strings.TrimPrefix(behind, "0x"), 16, 64)
		if err == nil { // else the name of an operator
			name, offset = before, n
		}
	}
	routines, err := names.Of(s).Routines(name)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", names.Printable(text), err)
	}
	for _, r := range routines {
		if at := s.Routines[r].Entry + offset; isInstruction(&s.Routines[r], at) {
			list = append(list, Instruction{r, at})
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("find %s: no instruction that ran begins there: dump --as insns "+
			"lists those", names.Printable(text))
	}
	return list, nil
}

func cutLast(text string, at byte) (before, behind string, found bool) {
	i := strings.LastIndexByte(text, at)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+1:], true
}

func isInstruction(r *wpp.Routine, addr uint64) bool {
	for i := range r.Blocks {
		at := r.Blocks[i].Addr
		for _, n := range r.Blocks[i].Lengths {
			if at == addr {
				return true
			}
			at += uint64(n)
		}
	}
	return false
}

func ofLine(s *wpp.Snapshot, file string, line int) (list []Instruction, err error) {
	found, err := profile.SourceFile(s, file)
	if err != nil {
		return nil, fmt.Errorf("find %s:%d: %w", names.Printable(file), line, err)
	}
	for r := range s.Routines {
		for i := range s.Routines[r].Blocks {
			b := &s.Routines[r].Blocks[i]
			at := b.Addr
			for k, n := range b.Lengths {
				x := SpanOf(b, k)
				if x.Line == line && path.Clean(s.Files[x.File]) == found {
					list = append(list, Instruction{r, at})
				}
				at += uint64(n)
			}
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("find %s:%d: no code of that line ran: hot --lines lists those "+
			"that did", names.Printable(file), line)
	}
	slices.SortFunc(list, func(a, b Instruction) int { return compare(a.Addr, b.Addr) })
	return list, nil
}

func compare(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// SpanOf is where an instruction of a block is in the source, in the innermost of the calls that
// are inlined there. Its Line is 0 if that is not known.
func SpanOf(b *wpp.Block, insn int) wpp.Span {
	for _, span := range b.Spans {
		if span.From <= insn && insn < span.To {
			return span
		}
	}
	if len(b.Spans) == 0 && (insn == 0 || b.Line == b.Last) {
		return wpp.Span{File: b.File, Line: b.Line}
	}
	return wpp.Span{}
}

// A Question asks for executions of some instructions.
type Question struct {
	At       []Instruction
	Threads  []int  // ids; none: all
	Instance uint64 // the one with this number, from 1, of each of At; 0: all
}

// Each gives each execution that is asked for to found, with its number among those of the same
// instruction: threads in the order of the snapshot. It replays the threads that ran one of them.
// An error of found ends it.
func Each(s *wpp.Snapshot, q *Question,
	found func(instance uint64, e *wet.Executed) error) (err error) {
	defer wpp.Recover(&err)
	if !Has(s) {
		return ErrNone
	}
	threads, err := query.Threads(s, q.Threads)
	if err != nil {
		return err
	}
	met := make(map[Instruction]uint64, len(q.At))
	for _, at := range q.At {
		met[at] = 0
	}
	left := len(q.At) // of which the instance has not come
	for i := range s.Threads {
		if !slices.Contains(threads, &s.Threads[i]) {
			continue
		}
		for e, err := range Instructions(s, i) {
			if err != nil {
				return err
			}
			at := Instruction{e.Routine, e.Addr}
			n, asked := met[at]
			if !asked {
				continue
			}
			n++
			met[at] = n
			if q.Instance > 0 && n != q.Instance {
				continue
			}
			if err := found(n, e); err != nil {
				return err
			}
			if left--; q.Instance > 0 && left == 0 {
				return nil
			}
		}
	}
	return nil
}
