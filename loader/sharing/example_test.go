package sharing_test

import (
	"fmt"
	"log"

	"wpptrace/loader/sharing"
	"wpptrace/loader/target"
)

// Whether others may write to where a process has just read.
func Example() {
	p, err := target.Open(4711)
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()
	none := func() (areas []sharing.Area, isWhole bool) { return nil, true } // nothing is hit
	m, err := sharing.Follow(p, none)
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	fmt.Println(m.Update() || m.Holds(0x7f1234560000, 8))
}
