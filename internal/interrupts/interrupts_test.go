package interrupts

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"wpptrace/internal/testenv"
)

// A signal that comes twice at once, as from timeout, is one wish; later it ends wpptrace at once.
func TestSignalTwiceAtOnce(t *testing.T) {
	s := Watch()
	defer s.Stop()
	send := func() {
		if err := unix.Kill(os.Getpid(), unix.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	send()
	send()
	<-s.End.Done()
	select {
	case <-s.Abort.Done():
		t.Error("the second of two signals at once aborts")
	case <-time.After(SameWish + SameWish/2):
	}
	send()
	select {
	case <-s.Abort.Done():
	case <-time.After(testenv.Patience):
		t.Error("a later signal does not abort")
	}
}
