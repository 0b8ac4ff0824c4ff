package follow_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"wpptrace/internal/record"
	"wpptrace/internal/record/follow"
	"wpptrace/loader/guard"
	"wpptrace/loader/target"
)

// Record a command and the programs that it starts, each in a snapshot of its own.
func Example() {
	guard.Main() // first in main: what puts the probes in is this program, started again
	if err := follow.Check(); err != nil {
		log.Fatal(err)
	}
	command, err := target.Start([]string{"sh", "-c", "ls / | sort"})
	if err != nil {
		log.Fatal(err)
	}
	defer command.Process.Close()
	options := record.Options{Child: command, Output: os.TempDir() + "/example.wpp"}
	result, err := follow.Run(context.Background(), options, func(event follow.Event) {
		switch e := event.(type) {
		case follow.Recorded:
			fmt.Printf("%s: %d hits, in %s\n", e.Name, e.Result.Snapshot.Figures.Hits,
				e.Result.Path)
		case follow.Unrecorded:
			fmt.Printf("%s is not recorded: %v\n", e.Name, e.Err)
		}
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Recordings, "recordings,", result.Losses.Events, "events lost")
}
