package raw

import (
	"encoding/binary"
	"encoding/hex"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"wpptrace/compress/ops"
)

// document is the specification.
func document(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/raw-trace.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// example returns the bytes and the words of each line of the worked example.
func example(t testing.TB) (bytes [][]byte, words []string) {
	_, block, _ := strings.Cut(document(t), "```\n")
	block, _, _ = strings.Cut(block, "```")
	for line := range strings.Lines(block) {
		digits, text, _ := strings.Cut(line, "  ")
		b, err := hex.DecodeString(strings.ReplaceAll(digits, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		bytes, words = append(bytes, b), append(words, strings.TrimSpace(text))
	}
	return bytes, words
}

var row = regexp.MustCompile(`(?m)^\| ([0-9a-f]{2}) \| (\w+) \|`)

// Each line of the example is what the tables of the document make of its words.
func TestDocument(t *testing.T) {
	opcodes := map[string]string{}
	for _, m := range row.FindAllStringSubmatch(document(t), -1) {
		opcodes[m[2]] = m[1]
	}
	if len(opcodes) != int(newPaths) {
		t.Errorf("%d opcodes in the document, %d here", len(opcodes), newPaths)
	}
	bytes, words := example(t)
	if len(words) < 20 || string(bytes[0]) != head {
		t.Fatalf("example: header % x, %d lines", bytes[0], len(words))
	}
	for i, text := range words[1:] {
		fields := strings.Fields(text)
		want, _ := hex.DecodeString(opcodes[fields[0]])
		for _, f := range fields[1:] {
			want = appendOperand(t, want, f)
		}
		if got := bytes[i+1]; !slices.Equal(got, want) {
			t.Errorf("%s is % x, not % x", text, want, got)
		}
	}
}

func appendOperand(t *testing.T, b []byte, operand string) []byte {
	if name, err := strconv.Unquote(operand); err == nil {
		return append(binary.AppendUvarint(b, uint64(len(name))), name...)
	}
	if start, end, ok := strings.Cut(operand, "-"); ok {
		for i := range ops.StartResume + 1 {
			for j := range ops.EndCut + 1 {
				if i.String() == start && j.String() == end {
					return append(b, byte(i)<<4|byte(j))
				}
			}
		}
	}
	n, err := strconv.ParseUint(operand, 0, 64)
	if err != nil {
		t.Fatal(err)
	}
	return binary.AppendUvarint(b, n)
}

// The example is read as the document says.
func TestExampleOfDocument(t *testing.T) {
	bytes, _ := example(t)
	r, l, err := list(slices.Concat(bytes...))
	if err != nil {
		t.Fatal(err)
	}
	want := transcript{"EnterRoutine 0", "NewPath 0 0", "EnterRoutine 1", "NewPath 1 300",
		"LeaveRoutine", "NewPath 0 1", "EnterRoutine 1", "NewPath 1 2",
		"cut 0", "unwind 1", "LeaveRoutine", "NewPath 0 2", "LeaveRoutine"}
	if !slices.Equal(*l.read[0], want) {
		t.Errorf("%q, want %q", *l.read[0], want)
	}
	if !slices.Equal(r.Routines(), []Routine{{0x1000, "main"}, {0, "routine_3"}}) ||
		!slices.Equal(l.threads, []Thread{{4711, 0, "sh"}}) {
		t.Errorf("routines %+v, threads %+v", r.Routines(), l.threads)
	}
}
