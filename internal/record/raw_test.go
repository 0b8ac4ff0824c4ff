package record

import (
	"os"
	"path/filepath"
	"testing"

	"wpptrace/compress/wpp/store"
	"wpptrace/internal/record/rawtrace"
	"wpptrace/loader/plan"
	"wpptrace/loader/target"
)

// TestRawTraceOfNothing: two recordings that were interrupted before they began left empty files in
// the place of a trace, and of the one before.
func TestRawTraceOfNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.raw")
	for name, content := range map[string]string{path: "new", store.Old(path): "old"} {
		must(t, os.WriteFile(name, []byte(content), 0o600))
	}
	trace, err := rawtrace.Create(path, &plan.Plan{}, nil)
	must(t, err)
	r := offline(t)
	r.raw, r.usage.used = trace, func() (target.Times,
		error) {
		return target.Times{}, target.ErrGone
	}
	if err := r.Begin(true); err == nil {
		t.Error("a recording begins of a process that is gone")
	}
	must(t, trace.Abandon())
	for name, content := range map[string]string{path: "new", store.Old(path): "old"} {
		if left, err := os.ReadFile(name); string(left) != content {
			t.Errorf("%s is now %q, %v", name, left, err)
		}
	}
	if left, err := os.ReadDir(dir); len(left) != 2 {
		t.Errorf("%v, %v", left, err)
	}
}
