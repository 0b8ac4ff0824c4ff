//go:build linux && cgo

package decoder_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain draws the same programs and walks each time where a change is judged (CI): what is found
// elsewhere, with a new seed at each run, is found for those who look for it, and not for a change
// that has nothing to do with it.
func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv("CI") != "" {
		flag.Set("rapid.seed", "1")
	}
	os.Exit(m.Run())
}
