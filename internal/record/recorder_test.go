package record

import (
	"errors"
	"os"
	"testing"

	"wpptrace/compress/spill"
)

// TestFailedBeginLeavesNoFile: a recording that fails to begin closes the libraries that it has
// opened, whatever it fails at.
func TestFailedBeginLeavesNoFile(t *testing.T) {
	library, err := os.Open("recorder_test.go")
	must(t, err)
	r := &Recorder{streams: spill.New(nil, spill.Limits{}),
		libraries: &libraries{files: []*os.File{library}}}
	must(t, r.abandon())
	if err := library.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the library's file: %v", err)
	}
}
