package valuetests

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"wpptrace/kernel-tests/exact"
	"wpptrace/kernel-tests/truth"
	"wpptrace/kernel-tests/zoo"
)

// TestRewrittenCode: of code that changes while it is recorded nothing is confirmed, and that is
// said, with the routine; of the same code that stays as it is all is.
func TestRewrittenCode(t *testing.T) {
	program := compile(t, "rewritten.c", "-O2")
	const warning = "no value is confirmed: the code of 1 routine was changed while it was " +
		"recorded, or could be: rewritten_one"
	for name, args := range map[string][]string{"stays": nil, "changes": {"it"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "x.wpp")
			target := exact.Target{Path: program, Args: args, Env: zoo.Env()}
			r, outcome := recordedTo(t, file, target, "-F", "^rewritten_")
			race := raced{t: t, saw: map[uint64]uint64{}}
			race.read(outcome.Stdout)
			for i := range r.Streams[0].Steps {
				step := &r.Streams[0].Steps[i]
				race.steps++
				race.by[step.Sure()]++
				for k := range step.Accesses {
					if a := &step.Accesses[k]; a.Write {
						race.check(step, a, race.saw[a.Addr])
					}
				}
			}
			race.log()
			changes := len(args) > 0
			if sure := race.by[truth.Confirmed]; race.compared != 200 || changes && sure > 0 ||
				!changes && sure < race.steps*9/10 || changes != (race.mistaken > 0) {
				t.Errorf("%d values are compared, %d are mistaken; %d instructions are confirmed",
					race.compared, race.mistaken, sure)
			}
			stat := exec.CommandContext(t.Context(), tracer.Path(), "values", "--stat", file)
			out, err := stat.Output()
			if err != nil || strings.Contains(string(out), warning) != changes {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// TestSealedData: what is loaded of data that the loader seals is not confirmed where no probe
// shows it: the process may have written there all the same.
func TestSealedData(t *testing.T) {
	program := compile(t, "sealed.c", "-O2", "-fPIE", "-pie", "-Wl,-z,relro,-z,now")
	file := filepath.Join(t.TempDir(), "x.wpp")
	target := exact.Target{Path: program, Env: zoo.Env()}
	r, outcome := recordedTo(t, file, target, "-F", "^sealed_")
	race := raced{t: t, saw: map[uint64]uint64{}}
	race.read(outcome.Stdout)
	race.compare(r.Streams[0])
	if race.log(); race.compared != 400 || race.mistaken == 0 {
		t.Errorf("%d values are compared, %d are mistaken", race.compared, race.mistaken)
	}
}
