package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wpptrace/internal/remedy"
)

// What a snapshot could not be put in the place of is known before it is recorded, and left as it
// is.
func TestCheckOutput(t *testing.T) {
	errKept := errors.New("it is kept")
	for name, c := range map[string]struct {
		make  func(path string) error
		keeps string // a suffix of what is not to be replaced; "": nothing
		want  string // at the end of the error; "": there is none
		kind  remedy.Kind
	}{
		"nothing there": {make: func(string) error { return nil }},
		"a file":        {make: touch},
		"a directory": {make: func(path string) error { return os.Mkdir(path, 0o700) },
			want: "it is not a regular file", kind: remedy.OtherSnapshot},
		"a link": {make: func(path string) error {
			return errors.Join(touch(path+"2"), os.Symlink(path+"2", path))
		}, want: "it is a link, which is not written through", kind: remedy.LinkTarget},
		"a directory at .old": {make: func(path string) error { return os.Mkdir(Old(path), 0o700) },
			want: "which is not a regular file", kind: remedy.OtherSnapshot},
		"no directory": {make: func(path string) error { return os.Remove(filepath.Dir(path)) },
			want: "no such file or directory", kind: remedy.OtherSnapshot},
		"a file that is kept": {make: touch, keeps: ".wpp", want: "it is kept",
			kind: remedy.OtherSnapshot},
		"a file at .old that is kept": {make: touch, keeps: oldSuffix, want: "it is kept",
			kind: remedy.OtherSnapshot},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "dir")
			path := filepath.Join(dir, "x.wpp")
			if err := errors.Join(os.Mkdir(dir, 0o700), c.make(path)); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadDir(dir)
			err := CheckOutput(path, func(name string) error {
				if c.keeps != "" && strings.HasSuffix(name, c.keeps) {
					return errKept
				}
				return nil
			})
			var marked *remedy.Error
			if c.want == "" && err != nil || c.want != "" && (!errors.As(err, &marked) ||
				marked.Kind != c.kind || !strings.HasSuffix(err.Error(), c.want)) {
				t.Errorf("error %v, want %q with remedy %d", err, c.want, c.kind)
			}
			if after, _ := os.ReadDir(dir); len(after) != len(before) {
				t.Errorf("%v is there, %v was", after, before)
			}
		})
	}
}

func touch(path string) error { return os.WriteFile(path, nil, 0o600) }
