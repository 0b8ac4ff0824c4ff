package image

import (
	"os"
	"path/filepath"
	"testing"
)

// Functions of one name may be the C library's, or another's.
func TestGlibcImports(t *testing.T) {
	const source = `
		void err(int, const char *, ...);
		void error(int, int, const char *, ...);
		int own(void) { return 0; }
		int main(int c, char **v) { if (c > 3) { err(1, "x"); error(1, 0, "y"); } return own(); }`
	library := filepath.Join(t.TempDir(), "libown.so")
	if err := os.Rename(compile(t, "own.c", "void err(int n, const char *text, ...) {}", "-shared", "-fPIC"), library); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		flags []string
		want  map[string]bool
	}{
		{nil, map[string]bool{"err": true, "error": true, "own": false, "main": false, "abort": false}},
		{[]string{library}, map[string]bool{"err": false, "error": true}},
		{[]string{"-static"}, map[string]bool{"err": false, "error": false}},
	} {
		im, err := OpenFile(compile(t, "p.c", source, c.flags...))
		if err != nil {
			t.Fatal(err)
		}
		defer im.Close()
		for name, want := range c.want {
			if got := im.IsGlibc(name); got != want {
				t.Errorf("%v: %s is the C library's: %v, want %v", c.flags, name, got, want)
			}
		}
	}
}
