package original

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/samples"
)

// TestPlacesOfBinaries: the file of an image is looked for where it was mapped from, where the
// command is, and where the snapshot says; a library also where the system has libraries.
func TestPlacesOfBinaries(t *testing.T) {
	s := &wpp.Snapshot{Images: []wpp.Image{{Name: "sh"}, {Name: "lib.so"}},
		Figures: wpp.Figures{Command: []string{"/bin/sh", "-c", "true"}}}
	p := &samples.Profile{Files: []samples.File{{Path: "/opt/lib.so", Image: 1, Samples: 1}}}
	s.Sections = append(s.Sections, p.Section())
	library := []string{"/opt/lib.so", "lib.so"}
	for _, dir := range libraryDirs {
		library = append(library, dir+"/lib.so")
	}
	for k, want := range [][]string{{"/bin/sh", "sh"}, library} {
		if got := placesOf(s, k); !slices.Equal(got, want) {
			t.Errorf("image %d: %q, want %q", k, got, want)
		}
	}
}

// TestReadSource: the file that is named comes before that which was recorded. Where neither is
// there, the error says so; what is no regular file is another error.
func TestReadSource(t *testing.T) {
	dir := t.TempDir()
	named, recorded := filepath.Join(dir, "a.c"), filepath.Join(dir, "b.c")
	missing := filepath.Join(dir, "c.c")
	for path, text := range map[string]string{named: "one\r\ntwo\n", recorded: "three"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name, path string
		lines      []string
	}{{named, named, []string{"one", "two"}}, {missing, recorded, []string{"three"}}} {
		source, changed, err := ReadSource(c.name, recorded)
		if err != nil || source.Path != c.path || !slices.Equal(source.Text, c.lines) ||
			changed.IsZero() {
			t.Errorf("%s: %+v, %v, %v", c.name, source, changed, err)
		}
	}
	if _, _, err := ReadSource(missing, missing); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, _, err := ReadSource(dir, recorded); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory: %v", err)
	}
}
