package rules

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"wpptrace/query/internal/deeds"
	"wpptrace/query/names"
)

// A call is one of a pattern that tests values: ROUTINE(ARGUMENT, ...), with =RESULT behind it when
// it is the return; or use(POINTER) or use(POINTER, SIZE).
type call struct {
	text      string // as it was written
	name      string // of the routine; in quotes, if it was
	kind      deeds.Kind
	arguments []test
	result    test
}

// A test is one of a value: it gives it a name, or compares it with what the name stands for
// already; and it compares it with another name, or a number. Both may be missing.
type test struct {
	name  string
	as    comparison
	other string // name; "": number
	to    int64
	size  int // of its low bytes, which are a signed number: 1, 2, 4 or 8
}

// A comparison is one of numbers, which are signed.
type comparison uint8

const (
	none comparison = iota
	equal
	unequal
	less
	lessOrEqual
	greater
	greaterOrEqual
)

// The longer ones come first.
var comparisons = []struct {
	text string
	is   comparison
}{{"!=", unequal}, {"<=", lessOrEqual}, {">=", greaterOrEqual}, {"=", equal}, {"<", less},
	{">", greater}}

const useWord = "use"

// cutCall returns the call that a text begins with, nil if it begins with none. It fails where that
// is meant to test a value, and does not.
func cutCall(text string) (*call, error) {
	head := strings.IndexFunc(text, isEndOfName)
	if text != "" && (text[0] == '\'' || text[0] == '"') {
		inner, _, ok := names.Unquote(text)
		if !ok {
			return nil, nil
		}
		head = len(inner) + 2
	}
	if head <= 0 || !strings.HasPrefix(text[head:], "(") {
		return nil, nil
	}
	inner, behind, ok := strings.Cut(text[head+1:], ")")
	c := &call{name: text[:head]}
	if !ok {
		return nil, nil
	}
	if strings.TrimSpace(inner) != "" {
		for _, part := range strings.Split(inner, ",") {
			t, rest, ok := cutTest(strings.TrimSpace(part))
			if !ok || rest != "" {
				return nil, notTest(strings.TrimSpace(part)) // else a group of paths behind a name
			}
			c.arguments = append(c.arguments, t)
		}
	}
	rest := behind
	if b, ok := strings.CutPrefix(behind, "="); ok && b != "" && isWordStart(b[0]) {
		rest = b
	}
	result, left, ok := cutTest(rest)
	isGiven := rest != behind || result.name == "" && result.as != none
	if ok && isGiven && result != (test{size: 8}) {
		if left != "" && !isEndOfName(rune(left[0])) {
			return nil, notResult(behind)
		}
		c.kind, c.result, behind = deeds.Returned, result, left
	}
	if c.kind == deeds.Called && len(c.arguments) == 0 {
		return nil, notResult(behind)
	}
	c.text = text[:len(text)-len(behind)]
	if c.name == useWord {
		c.kind = deeds.Used
	}
	return c, nil
}

// notTest says why a text is no test of a value, where it is meant to be one: nil, where it may be
// paths.
func notTest(text string) error {
	first := strings.TrimPrefix(text, "-")
	isMeant := strings.ContainsAny(text, "=<>") || first != "" && '0' <= first[0] && first[0] <= '9'
	if at := strings.IndexByte(text, ':'); at >= 0 {
		isMeant = isMeant || !strings.HasPrefix(text[at:], "::")
	}
	if !isMeant {
		return nil
	}
	return fmt.Errorf("%s tests no value: NAME, NUMBER or _, or [NAME] and one of = != < > <= >= "+
		"with a NAME or NUMBER; behind it :1, :2, :4 or :8 for how many bytes it has",
		names.Printable(text))
}

// notResult is notTest of what is behind the parentheses of a call.
func notResult(behind string) error {
	word, _, _ := strings.Cut(behind, " ")
	if word == "" || !strings.ContainsRune("=<>:", rune(word[0])) && !strings.HasPrefix(word, "!=") {
		return nil
	}
	return notTest(word)
}

func isEndOfName(r rune) bool { return strings.ContainsRune(signs+" \t\r\n", r) }

func isWordStart(b byte) bool { return b == '_' || 'a' <= b|0x20 && b|0x20 <= 'z' }

func isWord(b byte) bool { return isWordStart(b) || '0' <= b && b <= '9' }

// check fails where a call is none that can be tested.
func (c *call) check() error {
	if len(c.arguments) > deeds.MostArguments {
		return fmt.Errorf("%s: registers pass %d arguments: those behind them are not known",
			names.Printable(c.text), deeds.MostArguments)
	}
	n := len(c.arguments)
	if c.kind == deeds.Used && (c.result != test{} || n == 0 || n > 2 ||
		slices.ContainsFunc(c.arguments, func(t test) bool { return !t.isPlain() })) {
		return fmt.Errorf("%s: it is use(POINTER) or use(POINTER, BYTES), of names and numbers",
			names.Printable(c.text))
	}
	return nil
}

// isPlain reports whether a test is one name or one number.
func (t test) isPlain() bool {
	return t.size == 8 && (t.name != "" && t.as == none || t.name == "" && t.as == equal &&
		t.other == "")
}

// cutTest reads a test: [NAME] [COMPARISON VALUE] [:BYTES], or a number, or _, which tests nothing.
func cutTest(text string) (t test, rest string, ok bool) {
	t.size = 8
	rest = text
	if word, behind := cutWord(rest); word != "" && isWordStart(word[0]) {
		rest = behind
		if word != "_" {
			t.name = word
		}
	} else if n, behind, isNumber := cutNumber(rest); isNumber {
		t.as, t.to, rest = equal, n, behind
	}
	if rest == text && text == "" {
		return t, text, false
	}
	for _, c := range comparisons {
		behind, is := strings.CutPrefix(rest, c.text)
		if !is {
			continue
		}
		if t.as != none {
			return t, text, false
		}
		t.as = c.is
		if word, left := cutWord(behind); word != "" && isWordStart(word[0]) && word != "_" {
			t.other, rest = word, left
		} else if n, left, isNumber := cutNumber(behind); isNumber {
			t.to, rest = n, left
		} else {
			return t, text, false
		}
		break
	}
	if behind, is := strings.CutPrefix(rest, ":"); is {
		size, left := cutWord(behind)
		switch size {
		case "1", "2", "4", "8":
			t.size, rest = int(size[0]-'0'), left
		default:
			return t, text, false
		}
	}
	return t, rest, true
}

// cutWord cuts a name or the digits that a text begins with.
func cutWord(text string) (word, rest string) {
	n := 0
	for n < len(text) && isWord(text[n]) {
		n++
	}
	return text[:n], text[n:]
}

// cutNumber cuts a number that fits 64 bits, signed or not: decimal, or hex with 0x.
func cutNumber(text string) (n int64, rest string, ok bool) {
	digits, isNegative := strings.CutPrefix(text, "-")
	word, rest := cutWord(digits)
	v, err := strconv.ParseUint(word, 0, 64)
	switch {
	case err != nil || strings.Contains(word, "_"):
		return 0, text, false
	case isNegative && v > 1<<63:
		return 0, text, false
	case isNegative:
		return -int64(v), rest, true
	}
	return int64(v), rest, true
}

// holds compares two numbers.
func (c comparison) holds(a, b int64) bool {
	switch c {
	case equal:
		return a == b
	case unequal:
		return a != b
	case less:
		return a < b
	case lessOrEqual:
		return a <= b
	case greater:
		return a > b
	case greaterOrEqual:
		return a >= b
	}
	return true
}

// of is the number that the low bytes of a value are.
func (t *test) of(value uint64) int64 {
	unused := 64 - 8*t.size
	return int64(value<<unused) >> unused
}

// isInt reports whether a register has a negative number of 4 bytes, and zeroes above: that it is
// none of 8 is not known by the register.
func isInt(v, number int64) bool {
	return math.MinInt32 <= number && number < 0 && v == int64(uint32(number))
}
