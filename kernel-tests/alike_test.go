package kerneltests

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"wpptrace/kernel-tests/exact"
)

// An alike is a recording of a target that does the same in every run: its file, and the directory
// that the target ran in. Names of others are longer or shorter, and programs look at that.
type alike struct{ file, dir string }

// recordedOnce has them, by all that what the target does depends on.
var recordedOnce sync.Map

// recordOnce records a target that does the same in every run, once for all tests, and returns the
// snapshot and the target as it has run. The test is skipped where wpptrace refuses the target.
func recordOnce(t *testing.T, target exact.Target) (file string, ran exact.Target) {
	t.Helper()
	key := fmt.Sprintf("%q %q %q %q %v %q", target.Path, target.Args, target.Env, target.Stdin,
		target.FixedAddresses, target.Libraries)
	record, _ := recordedOnce.LoadOrStore(key, sync.OnceValues(func() (alike, error) {
		return recordAlike(target)
	}))
	r, err := record.(func() (alike, error))()
	if errors.Is(err, exact.ErrRefused) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	target.Dir = r.dir
	return r.file, target
}

func recordAlike(target exact.Target) (alike, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience())
	defer cancel()
	dir, err := os.MkdirTemp(work, "recorded")
	if err != nil {
		return alike{}, err
	}
	r := alike{filepath.Join(dir, "whole.wpp"), filepath.Join(dir, "run")}
	if err := os.Mkdir(r.dir, 0o755); err != nil {
		return alike{}, err
	}
	target.Dir = r.dir
	_, err = tracer.RecordTo(ctx, r.file, target)
	return r, err
}
