package names

import (
	"strings"
	"unicode/utf8"
)

// Ellipsis stands for what has been taken out.
const Ellipsis = "..."

// Shorten takes out of a name that is wider than width columns the arguments of its templates, the
// innermost first, and then its middle: of one whose brackets do not pair that alone.
func Shorten(name string, width int) string {
	for depth := nesting(name); depth > 0 && utf8.RuneCountInString(name) > width; depth-- {
		name = replaceArguments(name, depth, Ellipsis)
	}
	return ShortenMiddle(name, width)
}

// Fit makes a name printable and at most width columns wide, as Shorten does.
func Fit(name string, width int) string { return Shorten(Printable(name), width) }

// withoutArguments is a name without the arguments of its templates, if its brackets pair.
func withoutArguments(name string) string {
	if nesting(name) == 0 {
		return name
	}
	return strings.ReplaceAll(replaceArguments(name, 1, ""), "<>", "")
}

// nesting is how many lists of template arguments lie within each other at most; 0 too where their
// brackets do not pair, as where one stands for less or greater.
func nesting(name string) (most int) {
	level := 0
	for i := 0; i < len(name); {
		n, step := bracket(name[i:])
		if level += step; level < 0 {
			return 0
		}
		most = max(most, level)
		i += n
	}
	if level > 0 {
		return 0
	}
	return most
}

// replaceArguments puts a text in the place of template arguments that are nested as deep as that,
// or deeper, but for what is no longer.
func replaceArguments(name string, depth int, text string) string {
	var out strings.Builder
	level, arguments := 0, 0 // where those begin that are at that depth
	for i := 0; i < len(name); {
		n, step := bracket(name[i:])
		if step < 0 && level == depth {
			if i-arguments > len(text) {
				out.WriteString(text)
			} else {
				out.WriteString(name[arguments:i])
			}
		}
		level += step
		if level < depth || step > 0 && level == depth {
			out.WriteString(name[i : i+n])
			arguments = i + n
		}
		i += n
	}
	return out.String()
}

// operators are those with an angle bracket, the longest first.
var operators = []string{"<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "<", ">"}

// bracket takes the first byte of a name, or an operator's name as a whole, and says whether
// template arguments begin there (1) or end (-1).
func bracket(name string) (bytes, step int) {
	if sign, ok := strings.CutPrefix(name, "operator"); ok {
		for _, o := range operators {
			if strings.HasPrefix(sign, o) {
				return len("operator") + len(o), 0
			}
		}
	}
	switch name[0] {
	case '<':
		return 1, 1
	case '>':
		return 1, -1
	}
	return 1, 0
}

// ShortenMiddle takes out the middle of a text that is wider than width columns: names differ at
// both ends.
func ShortenMiddle(text string, width int) string {
	runes := []rune(text)
	width = max(width, len(Ellipsis)+2)
	if len(runes) <= width {
		return text
	}
	head := (width - len(Ellipsis) + 1) / 2
	tail := width - len(Ellipsis) - head
	front, back := string(runes[:head]), string(runes[len(runes)-tail:])
	// else it would not be clear where the ellipsis is
	return strings.TrimRight(front, ".") + Ellipsis + strings.TrimLeft(back, ".")
}

// ShortenLeft takes out the beginning of a text that is wider than width columns: a place in the
// source differs at its end.
func ShortenLeft(text string, width int) string {
	runes := []rune(text)
	width = max(width, len(Ellipsis)+1)
	if len(runes) <= width {
		return text
	}
	return Ellipsis + string(runes[len(runes)-width+len(Ellipsis):])
}
