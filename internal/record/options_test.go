package record_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"wpptrace/internal/record"
	"wpptrace/internal/record/follow"
	"wpptrace/loader/target"
)

// TestOptionsThatCannotBe: what options ask for that cannot be is an error before anything is
// touched, be there a handler or not.
func TestOptionsThatCannotBe(t *testing.T) {
	p, err := target.Open(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	path := filepath.Join(t.TempDir(), "x")
	for _, c := range []struct {
		name          string
		options       record.Options
		alone, follow error
	}{
		{"no process", record.Options{}, record.ErrNoProcess, record.ErrNoProcess},
		{"one file for trace and snapshot", record.Options{Process: p, Output: path, Raw: path},
			record.ErrOneFile, record.ErrOneFile},
		{"trace where the snapshot before goes",
			record.Options{Process: p, Output: path, Raw: path + ".old"}, record.ErrOneFile,
			record.ErrOneFile},
		{"one trace of several processes",
			record.Options{Process: p, Output: path, Raw: path + ".raw"}, nil, follow.ErrForOne},
		{"threads of several processes", record.Options{Process: p, Threads: []int{1}}, nil,
			follow.ErrForOne},
		{"budget of several processes", record.Options{Process: p, Overhead: 0.05}, nil,
			follow.ErrForOne},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.alone != nil {
				if _, err := record.Run(t.Context(), c.options, nil); !errors.Is(err, c.alone) {
					t.Errorf("Run: %v, want %v", err, c.alone)
				}
			}
			if _, err := follow.Run(t.Context(), c.options, nil); !errors.Is(err, c.follow) {
				t.Errorf("follow.Run: %v, want %v", err, c.follow)
			}
		})
	}
	if list, _ := filepath.Glob(path + "*"); len(list) > 0 {
		t.Errorf("there are %q", list)
	}
}
