package recovery

import (
	"errors"
	"fmt"

	"wpptrace/internal/remedy"
	"wpptrace/loader/cfg"
	"wpptrace/loader/cfg/draft"
	"wpptrace/loader/cfg/soundness"
	"wpptrace/loader/cfg/sweep"
	"wpptrace/loader/image"
)

// The search for jump tables takes about 20 instructions for each of a program's; an interpreter's
// dispatch takes thousands. More than this is hostile.
const stepsPerInsn = 100

// baseSteps are there for a program of any size: a variable for tests.
var baseSteps = 20_000_000

// NoUnwind says what to do about an image that has no unwind information.
func NoUnwind(im *image.Image) error {
	if im.IsGo() {
		return remedy.Errorf(remedy.OtherProfiler, "no unwind information (.eh_frame): it is a Go "+
			"program, and what is written in Go cannot be traced")
	}
	return errors.New("no unwind information (.eh_frame): compile it with " +
		"-fasynchronous-unwind-tables")
}

// Recover finds the routines of an image and the control flow graph of each. It fails only when the
// image holds no code with unwind information; what is wrong with one routine leaves that one out.
// The program shares the image and must not be changed; with that, it is safe for concurrent use.
// Cost: about 0.1 us a byte of code, and 10 ns a byte of data.
func Recover(im *image.Image) (*cfg.Program, error) {
	c, err := sweep.Decode(im)
	if err != nil {
		return nil, fmt.Errorf("recover routines of %s: %w", im.Name, err)
	}
	if len(c.Pieces) == 0 {
		return nil, fmt.Errorf("recover routines of %s: %w", im.Name, NoUnwind(im))
	}
	drafts := draft.New(sweep.ReadFile(im, c))
	for {
		drafts.Build(int64(baseSteps + stepsPerInsn*len(c.Insns)))
		if p := soundness.Check(drafts); !drafts.Distrust() {
			return p, nil
		}
	}
}
