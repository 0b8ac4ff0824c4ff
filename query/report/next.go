package report

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/pathprofile"
	"wpptrace/compress/wpp/samples"
	"wpptrace/query/names"
	"wpptrace/query/profile"
)

// Next says what to ask next, by name: which library would show more of the CPU time, and what
// there is to know of the hottest routine. selected says that routines were selected by name.
func Next(s *wpp.Snapshot, flat *profile.FlatReport, file string, selected bool) (
	next []string) {
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
	if line := ofJIT(time, s); line != "" {
		next = append(next, line)
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
	case x.Calls > 0 && file != "" && !pathprofile.IsProfile(s):
		next = append(next, fmt.Sprintf("wpptrace hot --callers %s %s prints who calls it",
			quoted(names.Shorten(name, widest)), quoted(file)))
	case x.Paths > 0 && file != "":
		next = append(next, fmt.Sprintf("wpptrace hot --disasm %s %s prints how often each of "+
			"its instructions ran", quoted(names.Shorten(name, widest)), quoted(file)))
	}
	return next
}

// ofJIT says how the code of a just-in-time compiler, which cannot be traced, gets names; "": there
// is not much of it, or it has some.
func ofJIT(time *profile.TimeReport, s *wpp.Snapshot) string {
	const least = 0.1 // of the CPU time
	i := slices.IndexFunc(time.Parts, func(t profile.TimePart) bool {
		return t.Kind == profile.JITTime && t.Share.Value() >= least
	})
	if i < 0 || slices.ContainsFunc(time.Profile.JIT,
		func(m samples.Memory) bool { return len(m.Names) > 0 }) {
		return ""
	}
	has := func(file string) bool {
		return slices.ContainsFunc(time.Profile.Files,
			func(f samples.File) bool { return path.Base(f.Path) == file })
	}
	how := "/tmp/perf-PID.map, which most just-in-time compilers write where they are asked to, names"
	switch {
	case has("libjvm.so"):
		how = fmt.Sprintf("jcmd %d Compiler.perfmap has the next recording name", s.Figures.PID)
	case has("node"):
		how = "node --perf-basic-prof, as it is started, has a recording name"
	case has("libcoreclr.so"):
		how = "DOTNET_PerfMapEnabled=1, as it is started, has a recording name"
	}
	return fmt.Sprintf("%s its JIT code, which cannot be traced: %.1f%% of the CPU time", how,
		100*time.Parts[i].Share.Value())
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
