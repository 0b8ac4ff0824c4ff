package image_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"wpptrace/internal/testenv"
	"wpptrace/loader/image"
)

// The soname is that of the file's dynamic section, and "" where there is none, or no ELF file.
func TestSoname(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil {
		testenv.Missing(t, err)
	}
	for _, c := range []struct{ name, flag, want string }{
		{"with a soname", "-Wl,-soname,libx.so.1", "libx.so.1"},
		{"without", "-Wl,--as-needed", ""},
	} {
		path := filepath.Join(t.TempDir(), "library")
		gcc := exec.Command("gcc", "-shared", "-nostdlib", c.flag, "-o", path, "-x", "c", os.DevNull)
		if out, err := gcc.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := image.Soname(f); got != c.want {
			t.Errorf("%s: %q, not %q", c.name, got, c.want)
		}
		f.Close()
	}
	if got := image.Soname(bytes.NewReader([]byte("#!/bin/sh\n"))); got != "" {
		t.Errorf("of a script: %q", got)
	}
}

func FuzzSoname(f *testing.F) {
	if data, err := os.ReadFile("/lib/x86_64-linux-gnu/libm.so.6"); err == nil {
		f.Add(data)
	}
	f.Add([]byte("\x7fELF\x02\x01\x01"))
	f.Fuzz(func(_ *testing.T, data []byte) { image.Soname(bytes.NewReader(data)) })
}
