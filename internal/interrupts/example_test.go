package interrupts_test

import (
	"os"

	"wpptrace/internal/interrupts"
)

// A first signal ends what is at work, a second one ends wpptrace at once.
func Example() {
	wishes := interrupts.Watch()
	defer wishes.Stop()
	prepared := wishes.QuitAtOnce(os.Stderr)
	// what is prepared need not be cleaned up
	prepared()
	<-wishes.End.Done()
}
