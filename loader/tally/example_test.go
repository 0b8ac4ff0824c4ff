package tally_test

import (
	"fmt"
	"log"
	"os"
	"time"

	"wpptrace/loader/image"
	"wpptrace/loader/tally"
	"wpptrace/loader/target"
)

// What some paths of a process do in a second.
func Example() {
	var (
		process  *target.Process // which runs
		im       *image.Image    // its program
		exe      *os.File        // the file of that
		routines []tally.Routine // of which package counting has chosen how they are counted
	)
	count := func() error {
		tables, err := tally.Pack(routines)
		if err != nil {
			return err
		}
		session, err := tally.Load(process, im, exe, tables)
		if err != nil {
			return err
		}
		defer session.Close()
		if err := session.Attach(); err != nil {
			return err
		}
		if err := session.Enable(false); err != nil {
			return err
		}
		time.Sleep(time.Second)
		counts, err := session.Read()
		if err != nil {
			return err
		}
		fmt.Println(counts.Value(&routines[0].Machine.Paths[0], tables.First[0]))
		return nil
	}
	if err := count(); err != nil {
		log.Fatal(err)
	}
}
