package report

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"wpptrace/query"
	"wpptrace/query/names"
)

// TableColumns is the width of tables, in a terminal or not.
const TableColumns = 100

// Field makes a name one field of a line whose fields are separated by spaces.
func Field(name string) string { return strings.ReplaceAll(names.Printable(name), " ", "_") }

func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
}

func hex(addr uint64) string { return strconv.FormatUint(addr, 16) }

func percent(part, whole uint64) float64 { return 100 * query.Share(part, whole) }
