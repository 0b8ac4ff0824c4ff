package followfork_test

import (
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"wpptrace/loader/followfork"
	"wpptrace/loader/guard"
	"wpptrace/loader/target"
)

// Follow a process for a while, and let each go at once that it starts.
func ExampleLoad() {
	var p *target.Process // to be opened
	var g *guard.Guard    // of the process
	f, err := followfork.Load(g)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	if err := f.Follow(p); err != nil {
		log.Fatal(err)
	}
	for end := time.Now().Add(time.Second); ; {
		n, err := f.Next(end)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(n.PID)
		if err := f.Resume(n.PID); err != nil {
			log.Fatal(err)
		}
	}
}
