package vm

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"wpptrace/kernel-tests/zoo"
)

// TestKernels runs the tests of kernels, those that WPPTRACE_KERNELS matches, on each of Kernels.
func TestKernels(t *testing.T) {
	pattern := os.Getenv("WPPTRACE_KERNELS")
	if pattern == "" {
		t.Skip("boots machines that run for hours: runs with WPPTRACE_KERNELS=.")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	files, binary := build(t)
	for _, k := range Kernels() {
		t.Run(k.Series, func(t *testing.T) {
			image, err := k.Fetch(t.Context(), filepath.Join(cache, "wpptrace", "kernels"))
			if err != nil {
				t.Fatal(err)
			}
			m := Machine{Kernel: image, Files: files,
				Command: []string{binary, "-test.v", "-test.timeout=0", "-test.run=" + pattern},
				Env: append(zoo.Env(), "CI=true", "HOME=/tmp",
					"WPPTRACE_BUILT="+filepath.Dir(binary))}
			var outcome Tally
			status, err := m.Run(t.Context(), func(line string) {
				outcome.Read(line)
				t.Log(line)
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s: %v", filepath.Base(image), &outcome)
			if status != 0 || len(outcome.Failed) > 0 || outcome.Passed == 0 {
				t.Errorf("exit status %d, failed: %s", status, strings.Join(outcome.Failed, ", "))
			}
		})
	}
}

// build makes all that the tests of kernels need, and returns what that is, and the program that
// they are.
func build(t *testing.T) (files []string, binary string) {
	dir := t.TempDir()
	binary = filepath.Join(dir, "kernel-tests")
	run := func(env string, name string, args ...string) {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", env)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
	}
	run("", "go", "test", "-c", "-o", binary, "wpptrace/kernel-tests")
	run("WPPTRACE_BUILD="+dir, binary)
	files = []string{dir}
	for _, name := range []string{"setarch", "true", "false"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, path)
	}
	for _, r := range zoo.Reals() {
		path, err := r.Path()
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, path)
	}
	return files, binary
}
