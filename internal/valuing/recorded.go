package valuing

import (
	"fmt"
	"strings"

	"wpptrace/compress/wet"
	"wpptrace/compress/wpp"
	"wpptrace/internal/text"
	"wpptrace/query/names"
	"wpptrace/query/values"
)

// mostCounted is how many instructions are replayed when a recording ends: a second of them.
const mostCounted = 10_000_000

// Recorded says of a snapshot that has just been recorded, in a file, how much of its values is
// known, and how to ask for them; of one of paths alone nothing. It takes a second at most.
func Recorded(s *wpp.Snapshot, file string) (lines []string, err error) {
	if !values.Has(s) {
		return nil, nil
	}
	n, err := instructions(s)
	if err != nil {
		return nil, err
	}
	line := "values: " + text.Count(n, "instruction")
	if n > 0 && n <= mostCounted {
		k, err := values.Count(s)
		if err != nil {
			return nil, err
		}
		of := 100 / float64(max(k.Instructions, 1))
		line += fmt.Sprintf(", of which %.2f%% are confirmed, %.2f%% unconfirmed, %.2f%% unknown",
			of*float64(k.Confirmed), of*float64(k.Unconfirmed), of*float64(k.Unknown))
	}
	lines = append(lines, line)
	changed, err := changedCode(s)
	if err != nil {
		return nil, err
	}
	if changed != "" {
		lines = append(lines, changed)
	}
	end, err := endOf(s)
	if err != nil {
		return nil, err
	}
	if end != "" {
		lines = append(lines, end)
	}
	return append(lines, "ask by wpptrace values --stat "+file+", which prints what is not known, "+
		"values --at, values --var, slice, watch and step"), nil
}

// changedCode says of which routines the code was changed; "": of none.
func changedCode(s *wpp.Snapshot) (string, error) {
	const most = 3 // that are named
	c, err := wet.CodeOf(s)
	if err != nil || c == nil || len(c.Changed()) == 0 {
		return "", err
	}
	var list []string
	for _, number := range c.Changed() {
		list = append(list, names.Printable(s.Routines[number].Name))
	}
	what := strings.Join(list[:min(most, len(list))], ", ")
	if n := len(list) - most; n > 0 {
		what += fmt.Sprintf(" and %d more", n)
	}
	return "no value is confirmed: the code of " + text.Count(uint64(len(list)), "routine") +
		" was changed while it was recorded, or could be: " + what, nil
}

// instructions is how many have been executed of which values were recorded.
func instructions(s *wpp.Snapshot) (n uint64, err error) {
	for i := range s.Threads {
		segments, err := wet.Segments(s, i)
		if err != nil {
			return 0, err
		}
		for k := range segments {
			for _, x := range segments[k].Ran() {
				n += x.Times * s.SymbolCost(x.Symbol)
			}
		}
	}
	return n, nil
}
