package coverage

import (
	"os/exec"
	"strings"
	"testing"

	"wpptrace/internal/testenv"
	"wpptrace/loader/target"
)

// A process that does little but fork is left alone: each fork takes longer for each probe.
func TestForksEndIt(t *testing.T) {
	s := testenv.Start(t, exec.Command("bash", "-c", "while :; do x=$(echo 1); done"))
	p, err := target.Open(s.PID())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var why error
	c, err := Run(t.Context(), Options{Process: p, EndsEarly: func(err error) { why = err }})
	if err != nil {
		t.Fatal(err)
	}
	if why == nil || !strings.Contains(why.Error(), "times a second") {
		t.Errorf("it ended: %v", why)
	}
	if r := NewReport(c); r.Blocks.Ran == 0 {
		t.Errorf("nothing has run: %+v", r.Blocks)
	}
	s.IsClean()
}
