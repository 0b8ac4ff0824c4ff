package coverage

import (
	"os"
	"testing"

	"wpptrace/loader/guard"
)

// TestMain lets the test binary, started again, be a guard.
func TestMain(m *testing.M) {
	guard.Main()
	os.Exit(m.Run())
}
