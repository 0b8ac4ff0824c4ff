// Command jsondoc writes, as docs/json.md, every member of every JSON object that wpptrace prints,
// from the Go types and the comments of their fields.
//
//	go run ./internal/jsondoc DIRECTORY
package main

//go:generate sh -c "go run . ../.. > ../../docs/json.md"

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// objects are what the commands print, with the packages of their types.
var objects = []struct{ command, typeName string }{
	{"wpptrace COMMAND --json, stat --json", "report.StatJSON"},
	{"profile --json", "report.ProfileJSON"},
	{"hot --json", "report.HotJSON"},
	{"hot --routines --json", "report.FlatJSON"},
	{"hot --callers ROUTINE --json", "report.CallersJSON"},
	{"hot --lines FILE --json", "report.LinesJSON"},
	{"hot --disasm ROUTINE --json", "report.DisasmJSON"},
	{"values --at PLACE --json", "valuereport.ValuesJSON"},
	{"values --var NAME --json", "valuereport.VariablesJSON"},
	{"slice --json", "valuereport.SliceJSON"},
	{"watch --json", "valuereport.WatchJSON"},
	{"hot --data --json", "valuereport.HotDataJSON"},
	{"find --json", "report.FindJSON"},
	{"order --json", "report.OrderJSON"},
	{"context --json", "report.ContextJSON"},
	{"rules --json", "report.RulesJSON"},
	{"diff --json", "report.DiffJSON"},
	{"bounds --json", "report.BoundsJSON"},
	{"plan --json", "planreport.Report"},
	{"plan --routine NAME --json", "planreport.Chart"},
	{"plan --interesting SNAPSHOT --json", "interesting.Report"},
	{"plan --overlap K --json", "overlapping.Report"},
	{"profile --interesting SNAPSHOT --json", "pathcount.Result"},
	{"check --json", "checkreport.Report"},
	{"coverage --json", "coverage.Report"},
	{"residual --json", "coverage.New"},
	{"residual --paths --json", "coverage.NewPaths"},
}

// sources are the directories whose types the objects are of.
var sources = []string{"query", "query/profile", "query/report", "query/valuereport",
	"internal/planreport", "internal/pathcount", "internal/interesting", "internal/overlapping",
	"internal/checkreport", "internal/coverage", "loader/plan/chart"}

const introduction = `# JSON

What the commands print with --json, written by make generate from the types that they print. Each
command prints one object, on a line. Within a version of the schema, members are only added.

The version is 2. In version 1, some members that were not known were 0 or an empty text.

What is not known is null, and never 0 or an empty text. A member marked *optional* is left out
where there is nothing to say. Counts stop at 2^64-1, and may be larger than a double holds exactly.
Names are as the program's file has them, whatever characters are in them.
`

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "jsondoc:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("one argument expected, the directory of the sources, not %d", len(args))
	}
	t := types{}
	for _, dir := range sources {
		if err := t.read(filepath.Join(args[0], dir)); err != nil {
			return err
		}
	}
	p := page{types: t, out: bufio.NewWriter(w), known: map[string]bool{}}
	p.out.WriteString(introduction)
	for _, o := range objects {
		if err := p.write("## "+o.command, o.typeName); err != nil {
			return err
		}
	}
	p.out.WriteString("\n# Objects within these\n")
	for len(p.queue) > 0 {
		next := p.queue[0]
		p.queue = p.queue[1:]
		if err := p.write("## "+title(next), next); err != nil {
			return err
		}
	}
	return p.out.Flush()
}
