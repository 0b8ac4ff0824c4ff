package report

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"wpptrace/compress/wpp"
	"wpptrace/query/names"
	"wpptrace/query/profile"
)

// Next says what to ask next, by name: which library would show more of the CPU time, and what
// there is to know of the hottest routine. selected says that routines were selected by name.
func Next(s *wpp.Snapshot, flat *profile.FlatReport, path string, selected bool) (next []string) {
	const least = 0.02 // of the CPU time
	time, err := profile.CPUTime(s)
	if err != nil || time == nil {
		return nil
	}
	percent := func(share float64) string { return fmt.Sprintf("%.1f%%", 100*share) }
	isLibrary := func(t profile.TimePart) bool {
		return t.Kind == profile.FileTime && !strings.HasPrefix(t.Name, "[") &&
			t.Share.Value() >= least
	}
	if i := slices.IndexFunc(time.Parts, isLibrary); i >= 0 {
		t := &time.Parts[i]
		next = append(next, fmt.Sprintf("--lib %s traces that library too: %s of the CPU time",
			quoted(t.Name), percent(t.Share.Value())))
	}
	isTraced := func(x profile.RoutineFigures) bool {
		return x.Routine != profile.NoRoutine && s.Routines[x.Routine].LeftOut == "" &&
			flat.Time(&x).Value() >= least
	}
	i := slices.IndexFunc(flat.Routines, isTraced)
	if i < 0 {
		return next
	}
	x := &flat.Routines[i]
	r := &s.Routines[x.Routine]
	const (
		widest = 40  // of a name
		most   = 0.8 // of the CPU time: to leave out the rest gains little
	)
	share := flat.Time(x).Value()
	switch name := names.Of(s).Routine(x.Routine); {
	case !selected && share < most && r.Image == 0 && r.Name != "" && len(r.Name) <= widest:
		next = append(next, fmt.Sprintf("-F %s traces that routine alone: %s of the CPU time",
			quoted("^"+regexp.QuoteMeta(r.Name)+"$"), percent(share)))
	case x.Calls > 0 && path != "":
		next = append(next, fmt.Sprintf("wpptrace hot --callers %s %s prints who calls it",
			quoted(names.Shorten(name, widest)), quoted(path)))
	case x.Paths > 0 && path != "":
		next = append(next, fmt.Sprintf("wpptrace hot --disasm %s %s prints how often each of "+
			"its instructions ran", quoted(names.Shorten(name, widest)), quoted(path)))
	}
	return next
}

// quoted is a word as a shell has to be given it.
func quoted(word string) string {
	word = names.Printable(word)
	if !strings.ContainsFunc(word, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-./+,:@%", r)
	}) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
