package report

import (
	"bufio"
	"strings"
	"unicode/utf8"

	"wpptrace/query/names"
	"wpptrace/query/rules"
)

// widestName is how wide a routine's name with a path's number gets in running text, at most: about
// what it gets in tables.
const widestName = 40

// words are symbols as running text has them: paths, their names shortened as in tables, and marks.
func (l *Labels) words(symbols []uint32) []string {
	var words []string
	for _, sym := range symbols {
		p := &l.snapshot.Symbols[sym]
		if !p.IsMark {
			words = append(words, l.Of(sym).Name(widestName))
			continue
		}
		text := appendMark(nil, p.Mark, p.N)
		words = append(words, string(text[:len(text)-1]))
	}
	return words
}

// stretch is the words of an occurrence, the end of a long one left out.
func (l *Labels) stretch(o rules.Occurrence) []string {
	words := l.words(o.Symbols)
	if uint64(len(o.Symbols)) < o.Length {
		words = append(words, names.Ellipsis)
	}
	return words
}

// writeParagraph writes words behind a front, in lines as wide as a table.
func writeParagraph(out *bufio.Writer, front string, words []string) {
	indent := utf8.RuneCountInString(front)
	at := indent
	if len(words) == 0 {
		front = strings.TrimRight(front, " ")
	}
	out.WriteString(front)
	for i, w := range words {
		width := utf8.RuneCountInString(w)
		switch {
		case i == 0:
		case at+1+width > TableColumns:
			out.WriteString("\n" + strings.Repeat(" ", indent))
			at = indent
		default:
			out.WriteByte(' ')
			at++
		}
		out.WriteString(w)
		at += width
	}
	out.WriteByte('\n')
}

// writeFitted writes a line as wide as a table, with a text in its middle that the user gave.
func writeFitted(out *bufio.Writer, front, text, behind string) {
	room := TableColumns - utf8.RuneCountInString(front+behind)
	out.WriteString(front + names.Fit(text, room) + behind + "\n")
}
