package source

import (
	"log/slog"
	"os"
	"strings"
	"testing"

	"wpptrace/internal/testenv"
	"wpptrace/internal/traced"
)

// FuzzProgram: what a recording reads of a program, whatever bytes it has, ends with a plan and
// source lines, or an error that names it.
func FuzzProgram(f *testing.F) {
	testenv.FuzzProgram(f, func(t *testing.T, program *os.File) {
		p, err := traced.Load(program, "fuzzed", traced.Selection{})
		if err != nil {
			if text := err.Error(); !strings.Contains(text, "fuzzed") ||
				strings.Contains(text, "mistake of wpptrace's") {
				t.Fatal(err)
			}
			return
		}
		lines, err := p.Image.Lines()
		if err != nil {
			return
		}
		sources := NewTable(NewTroubles(slog.New(slog.DiscardHandler)))
		for _, r := range p.Plan.Routines {
			sources.blocksOf(r.Routine, lines)
		}
	})
}
