package record_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestExampleIsAProgram: the example, as the main function of a program, records, and prints the
// five hottest subpaths. It once started itself without end.
func TestExampleIsAProgram(t *testing.T) {
	if testing.Short() {
		t.Skip("it traces a process")
	}
	dir := t.TempDir()
	text, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	program := strings.NewReplacer("package record_test", "package main",
		"func Example()", "func main()").Replace(string(text))
	source, binary := filepath.Join(dir, "main.go"), filepath.Join(dir, "example")
	overlay := filepath.Join(dir, "overlay.json")
	inModule, err := filepath.Abs("copied/main.go")
	if err != nil {
		t.Fatal(err)
	}
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{inModule: source}})
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string]string{source: program, overlay: string(list)} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("go", "build", "-overlay", overlay, "-o", binary,
		"./copied").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	run := exec.Command(binary)
	run.Env = append(os.Environ(), "TMPDIR="+dir)
	out, err := run.CombinedOutput()
	subpath := `\s*\d+\.\d\d%(  \S+#\d+)+\n`
	want := regexp.MustCompile(`^ended: exited\n(` + subpath + `){5}$`)
	if err != nil || !want.Match(out) {
		t.Errorf("%v, it printed:\n%s", err, out)
	}
}
