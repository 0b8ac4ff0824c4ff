package record_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"wpptrace/internal/record"
	"wpptrace/loader/guard"
	"wpptrace/loader/target"
	"wpptrace/query"
	"wpptrace/query/report"
)

// Record a command, and print its five hottest subpaths.
func Example() {
	guard.Main() // first in main: what puts the probes in is this program, started again
	command, err := target.Start([]string{"bash", "-c", "for i in {1..99}; do x=$((x + i)); done"})
	if err != nil {
		log.Fatal(err)
	}
	defer command.Process.Close()
	options := record.Options{Child: command, Output: os.TempDir() + "/example.wpp"}
	result, err := record.Run(context.Background(), options, func(event record.Event) {
		if end, over := event.(record.Ended); over {
			fmt.Println("ended:", end.Reason)
		}
	})
	if err != nil {
		log.Fatal(err)
	}
	q := query.DefaultHotQuery()
	q.Top = 5
	hot, err := query.Hot(result.Snapshot, q)
	if err != nil {
		log.Fatal(err)
	}
	labels := report.NewLabels(result.Snapshot)
	for _, subpath := range hot.Subpaths {
		fmt.Printf("%5.2f%%", 100*float64(subpath.Covered)/float64(hot.Total))
		for _, symbol := range subpath.Symbols {
			path := labels.Of(symbol)
			fmt.Printf("  %s#%d", path.Routine, path.Path)
		}
		fmt.Println()
	}
}
