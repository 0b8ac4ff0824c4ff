package original

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/samples"
	"wpptrace/loader/image"
	"wpptrace/query/report"
)

// mostSource bounds a source file, in bytes.
const mostSource = 64 << 20

// ReadSource reads a source file by its name, or where there is none by the path that was recorded,
// and when it was changed. The error is fs.ErrNotExist where there is neither.
func ReadSource(name, recorded string) (source report.Source, changed time.Time, err error) {
	for _, source.Path = range []string{name, recorded} {
		if source.Text, changed, err = readLines(source.Path); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return source, changed, err
}

func readLines(path string) (lines []string, changed time.Time, err error) {
	f, size, err := image.OpenRegular(path)
	if err != nil {
		return nil, changed, err
	}
	defer f.Close()
	if size > mostSource {
		return nil, changed, fmt.Errorf("%s is larger than %d MiB", path, mostSource>>20)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, changed, err
	}
	all, err := io.ReadAll(io.LimitReader(f, mostSource))
	if err != nil {
		return nil, changed, err
	}
	for line := range strings.Lines(string(all)) {
		lines = append(lines, strings.TrimRight(line, "\r\n"))
	}
	return lines, info.ModTime(), nil
}

// OpenBinary opens the file that image k of a snapshot was, and returns its path with it: the file
// that is named or, where named is "", the first of those where it may be that is the same build.
// A file passes too that has no build id, as none was recorded. The caller closes the image.
func OpenBinary(s *wpp.Snapshot, k int, named string) (im *image.Image, path string, err error) {
	list := []string{named}
	if named == "" {
		list = placesOf(s, k)
	}
	var first error
	for _, path := range list {
		im, err := openBuild(path, &s.Images[k])
		if err == nil {
			return im, path, nil
		}
		first = cmp.Or(first, err)
	}
	return nil, "", first
}

// placesOf lists where the file of an image may be: where it was mapped from, as far as that is
// known, and where the command says.
func placesOf(s *wpp.Snapshot, k int) (list []string) {
	if p, err := samples.Of(s); err == nil && p != nil {
		for i := range p.Files {
			if p.Files[i].Image == k {
				list = append(list, p.Files[i].Path)
			}
		}
	}
	if k == 0 && len(s.Figures.Command) > 0 {
		if path, err := exec.LookPath(s.Figures.Command[0]); err == nil {
			list = append(list, path)
		}
	}
	list = append(list, s.Images[k].Name)
	if k > 0 && !strings.Contains(s.Images[k].Name, "/") { // a library, of which that is its name
		for _, dir := range libraryDirs {
			list = append(list, filepath.Join(dir, s.Images[k].Name))
		}
	}
	return list
}

// libraryDirs are where distributions have the libraries of their programs.
var libraryDirs = []string{"/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu", "/usr/lib64",
	"/lib64", "/usr/lib", "/lib", "/usr/local/lib"}

// openBuild opens a file if it has the build id of an image.
func openBuild(path string, recorded *wpp.Image) (*image.Image, error) {
	im, err := image.OpenFile(path)
	if err != nil {
		return nil, err
	}
	if id := hex.EncodeToString(recorded.BuildID); im.BuildID != id {
		im.Close()
		return nil, fmt.Errorf("%s has build id %s, and %s, which was recorded, %s", path,
			orNone(im.BuildID), recorded.Base(), orNone(id))
	}
	return im, nil
}

func orNone(id string) string { return cmp.Or(id, "none") }
