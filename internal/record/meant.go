package record

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"wpptrace/loader/cfg"
	routinenames "wpptrace/query/names"
)

// meant says which routines may be meant by an expression that matches none: those with similar
// names, or those into which what it matches is inlined.
func meant(c *cfg.Program, text string) string {
	var known []string
	for _, r := range c.Routines {
		known = append(known, r.Name)
	}
	if into := inlinedInto(c, text); len(into) > 0 {
		return fmt.Sprintf(", but is inlined into %s: -F with these traces that code", routinenames.List(into))
	}
	const most = 3
	plain := strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(text, "^"), "$"), `\`, "")
	if similar := routinenames.Similar(plain, known, most); len(similar) > 0 {
		return ", but there is " + strings.Join(similar, ", ")
	}
	return ""
}

// inlinedInto returns the routines with code that is inlined from those whose names an expression
// matches, as far as debug information says so. It takes the time of reading all of that.
func inlinedInto(c *cfg.Program, text string) (into []string) {
	re, err := regexp.Compile(text)
	if err != nil {
		return nil
	}
	lines, err := c.Image.Lines()
	if err != nil {
		return nil
	}
	defer lines.Release()
	for _, addr := range lines.Copies(re.MatchString) {
		for _, r := range c.Routines {
			if has(r, addr) && !slices.Contains(into, r.Name) {
				into = append(into, r.Name)
			}
		}
	}
	return into
}

func has(r *cfg.Routine, addr uint64) bool {
	return slices.ContainsFunc(r.Ranges, func(span [2]uint64) bool { return span[0] <= addr && addr < span[1] })
}
