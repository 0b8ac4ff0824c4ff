package vm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Kernel is one of those that Debian has packaged.
type Kernel struct {
	Series string // as 6.1
	Suite  string // the part of Debian that has it
}

// Kernels lists those that wpptrace is tested with besides the one that runs.
func Kernels() []Kernel {
	return []Kernel{{"6.1", "bookworm"}, {"6.12", "bookworm-backports"}}
}

// Fetch returns the path of the kernel's image, by way of apt the first time: it is kept in the
// directory cache. It takes a Debian machine, whose mirror has the suite, and half a minute.
func (k Kernel) Fetch(ctx context.Context, cache string) (path string, err error) {
	kept, err := filepath.Glob(filepath.Join(cache, "vmlinuz-"+k.Series+".*"))
	if err != nil {
		return "", err
	}
	if len(kept) > 0 {
		return newest(kept), nil
	}
	if path, err = k.fetch(ctx, cache); err != nil {
		return "", fmt.Errorf("fetch a kernel %s of Debian's: %w", k.Series, err)
	}
	return path, nil
}

func (k Kernel) fetch(ctx context.Context, cache string) (path string, err error) {
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(cache, "fetch")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	apt := &packages{dir: dir}
	if err := apt.use(ctx, k.Suite); err != nil {
		return "", err
	}
	names, err := apt.run(ctx, "apt-cache", "pkgnames", "linux-image-"+k.Series+".")
	if err != nil {
		return "", err
	}
	name := k.pick(strings.Fields(names))
	if name == "" {
		return "", fmt.Errorf("there is none in %s", k.Suite)
	}
	if _, err := apt.run(ctx, "apt-get", "download", name); err != nil {
		return "", err
	}
	if _, err := apt.run(ctx, "sh", "-c", "dpkg -x *.deb ."); err != nil {
		return "", err
	}
	images, err := filepath.Glob(filepath.Join(dir, "boot", "vmlinuz-*"))
	if err != nil || len(images) != 1 {
		return "", errors.Join(err, fmt.Errorf("%s has %d images, not one", name, len(images)))
	}
	path = filepath.Join(cache, filepath.Base(images[0]))
	return path, os.Rename(images[0], path)
}

// pick returns the newest of those packages that hold a kernel for virtual machines and no
// signature; "" if there is none.
func (k Kernel) pick(names []string) string {
	wanted := regexp.MustCompile(`^linux-image-` + regexp.QuoteMeta(k.Series) +
		`\.[^-]+(-[0-9]+)?-cloud-amd64-unsigned$`)
	return newest(slices.DeleteFunc(names,
		func(name string) bool { return !wanted.MatchString(name) }))
}

// newest returns the one whose numbers are highest; "" of none.
func newest(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return slices.MaxFunc(names,
		func(a,
			b string) int {
			return slices.Compare(numbers(filepath.Base(a)), numbers(filepath.Base(b)))
		})
}

var digits = regexp.MustCompile(`[0-9]+`)

func numbers(text string) (list []int) {
	for _, d := range digits.FindAllString(text, -1) {
		n, _ := strconv.Atoi(d)
		list = append(list, n)
	}
	return list
}

// packages are those of a suite, apart from those that the machine installs from.
type packages struct {
	dir     string
	options []string // of apt
}

// use has apt know the suite at the mirror that the machine uses.
func (p *packages) use(ctx context.Context, suite string) error {
	out, err := p.run(ctx, "apt-get", "indextargets", "--format", "$(REPO_URI)", "Origin: Debian",
		"Label: Debian", "Created-By: Packages")
	if err != nil {
		return err
	}
	mirrors := strings.Fields(out)
	if len(mirrors) == 0 {
		return errors.New("this machine knows no mirror of Debian: run apt-get update")
	}
	sources := filepath.Join(p.dir, "sources.list")
	const keys = "/usr/share/keyrings/debian-archive-keyring.gpg"
	if err := os.WriteFile(sources,
		fmt.Appendf(nil, "deb [signed-by=%s] %s %s main\n", keys, mirrors[0], suite),
		0o644); err != nil {
		return err
	}
	for name, value := range map[string]string{"Dir::Etc::sourcelist": sources,
		"Dir::Etc::sourceparts": "-", "Dir::State::lists": filepath.Join(p.dir, "lists"),
		"Dir::Cache": filepath.Join(p.dir, "cache"), "APT::Sandbox::User": "root"} {
		p.options = append(p.options, "-o", name+"="+value)
	}
	for _, d := range []string{"lists", "cache/archives"} {
		if err := os.MkdirAll(filepath.Join(p.dir, d, "partial"), 0o755); err != nil {
			return err
		}
	}
	_, err = p.run(ctx, "apt-get", "update", "-q")
	return err
}

// run runs a command in the directory, with the options if it is one of apt's, and returns what it
// prints.
func (p *packages) run(ctx context.Context, name string, args ...string) (string, error) {
	all := args
	if strings.HasPrefix(name, "apt-") {
		all = append(slices.Clone(p.options), args...)
	}
	cmd := exec.CommandContext(ctx, name, all...)
	cmd.Dir = p.dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("run %s %s: %w\n%s", name, strings.Join(args, " "), err, &stderr)
	}
	return string(out), nil
}
