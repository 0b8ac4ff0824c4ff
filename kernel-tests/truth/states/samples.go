package states

import (
	"embed"
	"encoding/gob"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"

	"wpptrace/kernel-tests/truth"
)

//go:embed testdata
var files embed.FS

// Names are those of the samples: programs of the zoo.
func Names() []string {
	return []string{"alloca", "rep", "switch_dense", "tailcalls", "threaded_code", "values_one"}
}

// A Sample is one recorded run.
type Sample struct {
	Name       string
	Executable []byte // an ELF file, with symbols
	Trace      *truth.Trace
}

// Load reads a sample. It takes some 50 ms, and the caller may change what it gets.
func Load(name string) (*Sample, error) {
	f, err := files.Open("testdata/" + name + ".zst")
	if err != nil {
		return nil, fmt.Errorf("load truth of %s: %w", name, err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("load truth of %s: %w", name, err)
	}
	defer z.Close()
	s := &Sample{}
	if err := gob.NewDecoder(z).Decode(s); err != nil {
		return nil, fmt.Errorf("load truth of %s: %w", name, err)
	}
	return s, nil
}

// Write writes a sample as Load reads it.
func (s *Sample) Write(w io.Writer) error {
	z, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	if err != nil {
		return fmt.Errorf("write truth of %s: %w", s.Name, err)
	}
	err = gob.NewEncoder(z).Encode(s)
	if closed := z.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("write truth of %s: %w", s.Name, err)
	}
	return nil
}

// Install puts the executable into a directory, for what opens a file.
func (s *Sample) Install(dir string) (path string, err error) {
	path = filepath.Join(dir, s.Name)
	if err := os.WriteFile(path, s.Executable, 0o755); err != nil {
		return "", fmt.Errorf("install %s: %w", s.Name, err)
	}
	return path, nil
}
