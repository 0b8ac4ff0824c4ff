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

// Record a shell and each process that it starts, and print where their snapshots are.
func Example() {
	guard.Main() // first in main: what puts the probes in is this program, started again
	command, err := target.Start([]string{"bash", "-c", "ls | sort"})
	if err != nil {
		log.Fatal(err)
	}
	defer command.Process.Close()
	options := record.Options{Child: command, Output: os.TempDir() + "/example.wpp"}
	_, err = follow.Run(context.Background(), options, func(event follow.Event) {
		if done, ok := event.(follow.Recorded); ok && done.Result.Written {
			fmt.Println(done.PID, done.Name, done.Result.Path)
		}
	})
	if err != nil {
		log.Fatal(err)
	}
}
