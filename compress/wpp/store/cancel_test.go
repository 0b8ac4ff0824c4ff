package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"wpptrace/compress/wpp"
)

// A write that is given up leaves the file that was there, and nothing else.
func TestWriteFileContextCancelled(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.wpp")
	if err := os.WriteFile(path, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := WriteFileContext(ctx, path, &wpp.Snapshot{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("left: %v, %v", entries, err)
	}
	if b, err := os.ReadFile(path); string(b) != "before" || err != nil {
		t.Errorf("the file holds %q, %v", b, err)
	}
	if err := WriteFileContext(t.Context(), path, &wpp.Snapshot{}); err != nil {
		t.Errorf("not cancelled: %v", err)
	}
}
