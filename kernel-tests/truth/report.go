package truth

import (
	"bufio"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// A Sureness is how sure the tracer says a value is.
type Sureness uint8

// The degrees.
const (
	Unknown Sureness = iota
	Unconfirmed
	Confirmed
)

// A ReportedRegister is a general register that an instruction has written.
type ReportedRegister struct {
	RegisterValue
	Sureness
}

// A ReportedAccess is one of an instruction to memory.
type ReportedAccess struct {
	MemoryValue      // Bytes has the length of the access, whatever is known
	Sureness         // of Bytes
	Placed      bool // Addr is known
	Write       bool
}

// A ReportedStep is what the tracer says of one executed instruction.
type ReportedStep struct {
	PC        uint64 // link-time
	Registers []ReportedRegister
	Accesses  []ReportedAccess
	Flags     ReportedFlags
	Vectors   []ReportedVector
}

// ReportedFlags are the flags that an instruction has used, as RFLAGS has them, and what they were.
type ReportedFlags struct {
	Used, Value uint32
	Sureness
}

// A ReportedVector is a vector register that an instruction has written.
type ReportedVector struct {
	Number uint8
	Bytes  [16]byte
	Sureness
}

// Sure is how sure the least sure value of the instruction is, flags and vectors left out:
// Confirmed if it has none.
func (s *ReportedStep) Sure() Sureness {
	least := Confirmed
	for _, r := range s.Registers {
		least = min(least, r.Sureness)
	}
	for _, a := range s.Accesses {
		least = min(least, a.Sureness)
		if !a.Placed {
			least = Unknown
		}
	}
	return least
}

// A ValueStream is what the tracer says of one thread.
type ValueStream struct {
	TID   int
	Steps []ReportedStep
	Marks []Mark
}

// Stream is the stream without values.
func (v *ValueStream) Stream() *Stream {
	s := &Stream{TID: v.TID, Marks: v.Marks}
	for i := range v.Steps {
		s.Insns = append(s.Insns, v.Steps[i].PC)
	}
	return s
}

// ParseValues reads the lines of `wpptrace dump --as values`: those of ParseInsns, with what each
// instruction has written and accessed behind them.
func ParseValues(r io.Reader, image string, libraries ...string) ([]*ValueStream, error) {
	p := insnParser{image: image, libraries: libraries, byTID: map[int]*Stream{}}
	values := map[*Stream]*ValueStream{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		head, items := cutLine(lines.Text())
		before := p.insns
		err := p.line(head)
		if err == nil && p.insns > before {
			s := p.last
			v := values[s]
			if v == nil {
				v = &ValueStream{TID: s.TID}
				values[s] = v
			}
			var step ReportedStep
			step, err = parseStep(items)
			step.PC = s.Insns[len(s.Insns)-1]
			v.Steps = append(v.Steps, step)
		}
		if err != nil {
			return nil, fmt.Errorf("parse dump of values, line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read dump of values: %w", err)
	}
	p.settle(p.last)
	var list []*ValueStream
	for _, s := range p.streams {
		v := values[s]
		v.Marks = s.Marks
		list = append(list, v)
	}
	return list, nil
}

// cutLine takes a line apart: what a dump of instructions has of it, and the rest; nil: it is no
// instruction.
func cutLine(line string) (head string, items []string) {
	if strings.HasPrefix(line, "#") {
		return line, nil
	}
	fields := strings.Fields(line)
	if len(fields) < 3 {
		return line, nil
	}
	return strings.Join(fields[:3], " "), fields[3:]
}

func parseStep(items []string) (s ReportedStep, err error) {
	for _, item := range items {
		name, value, ok := strings.Cut(item, "=")
		if !ok {
			return s, fmt.Errorf("%q has no value", item)
		}
		sure := Confirmed
		if v, ok := strings.CutSuffix(value, "?"); ok {
			value, sure = v, Unconfirmed
		}
		if value == "-" {
			value, sure = "", Unknown
		}
		switch other, err := s.parseOther(name, value, sure); {
		case err != nil:
			return s, fmt.Errorf("%q: %w", item, err)
		case other:
			continue
		}
		if place, ok := strings.CutSuffix(name, "]"); ok {
			a, err := parseAccess(place, value, sure)
			if err != nil {
				return s, fmt.Errorf("access %q: %w", item, err)
			}
			s.Accesses = append(s.Accesses, a)
			continue
		}
		number := slices.Index(generalNames[:], name)
		if number < 0 {
			return s, fmt.Errorf("%q names no general register", item)
		}
		r := ReportedRegister{RegisterValue{Register: uint8(number)}, sure}
		if sure != Unknown {
			if r.Value, err = strconv.ParseUint(value, 16, 64); err != nil {
				return s, fmt.Errorf("value of %q is not a hexadecimal number", item)
			}
		}
		s.Registers = append(s.Registers, r)
	}
	return s, nil
}

// parseOther reads what is neither a general register nor an access; false: it is one of these.
func (s *ReportedStep) parseOther(name, value string, sure Sureness) (other bool, err error) {
	if mask, ok := strings.CutPrefix(name, "f["); ok {
		used, err := strconv.ParseUint(strings.TrimSuffix(mask, "]"), 16, 16)
		if err != nil {
			return true, err
		}
		number, err := strconv.ParseUint(cmp.Or(value, "0"), 16, 16)
		s.Flags = ReportedFlags{uint32(used), uint32(number), sure}
		return true, err
	}
	digits, ok := strings.CutPrefix(name, "xmm")
	if !ok {
		return false, nil
	}
	n, err := strconv.ParseUint(digits, 10, 4)
	if err != nil {
		return true, err
	}
	v := ReportedVector{Number: uint8(n), Sureness: sure}
	b, err := hex.DecodeString(strings.Repeat("0", max(0, 32-len(value))) + value)
	if err != nil || len(b) != len(v.Bytes) {
		return true, errors.New("it is no number of 16 bytes")
	}
	slices.Reverse(b)
	v.Bytes = [16]byte(b)
	s.Vectors = append(s.Vectors, v)
	return true, nil
}

// generalNames are those of the general registers by their hardware numbers.
var generalNames = [16]string{"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9",
	"r10", "r11", "r12", "r13", "r14", "r15"}

func parseAccess(place, value string, sure Sureness) (a ReportedAccess, err error) {
	const most = 1 << 24 // bytes that one instruction accesses
	way, rest, ok := strings.Cut(place, "[")
	addr, bytes, sized := strings.Cut(rest, ":")
	if !ok || !sized || way != "r" && way != "w" {
		return a, fmt.Errorf("it is not r[ADDR:SIZE] or w[ADDR:SIZE]")
	}
	a.Write, a.Sureness = way == "w", sure
	if bytes == "-" {
		bytes = "0"
	}
	size, err := strconv.Atoi(bytes)
	if err != nil || size < 0 || size > most {
		return a, fmt.Errorf("size %q is not a number of bytes", bytes)
	}
	a.Bytes = make([]byte, size)
	if a.Placed = addr != "-"; a.Placed {
		if a.Addr, err = strconv.ParseUint(addr, 16, 64); err != nil {
			return a, fmt.Errorf("address %q is not a hexadecimal number", addr)
		}
	}
	if sure == Unknown {
		return a, nil
	}
	if len(value) > 2*size {
		return a, fmt.Errorf("value has more than %d bytes", size)
	}
	b, err := hex.DecodeString(strings.Repeat("0", 2*size-len(value)) + value)
	if err != nil {
		return a, fmt.Errorf("value is not a hexadecimal number")
	}
	slices.Reverse(b)
	a.Bytes = b
	return a, nil
}

// WriteValues writes a thread as `wpptrace dump --as values` would, all of it confirmed: of
// registers those whose values change.
func WriteValues(w io.Writer, t *Thread, image string) error {
	out := bufio.NewWriter(w)
	for i := range t.Values {
		s := &t.Values[i]
		fmt.Fprintf(out, "%d %s %x", t.TID, image, s.PC)
		for _, r := range s.Written {
			fmt.Fprintf(out, " %s=%x", generalNames[r.Register], r.Value)
		}
		for _, m := range s.Reads {
			fmt.Fprintf(out, " r[%x:%d]=%s", m.Addr, len(m.Bytes), hexNumber(m.Bytes))
		}
		for _, m := range s.Writes {
			fmt.Fprintf(out, " w[%x:%d]=%s", m.Addr, len(m.Bytes), hexNumber(m.Bytes))
		}
		fmt.Fprintln(out)
	}
	return out.Flush()
}

// hexNumber is the number that bytes are in memory.
func hexNumber(b []byte) string {
	reversed := slices.Clone(b)
	slices.Reverse(reversed)
	if s := strings.TrimLeft(hex.EncodeToString(reversed), "0"); s != "" {
		return s
	}
	return "0"
}
