package zoo

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"wpptrace/internal/testenv"
)

func TestPairwiseCoversAllPairs(t *testing.T) {
	sizes := []int{2, 4, 2, 2, 2, 7}
	rows := pairwise(sizes)
	for f := range sizes {
		for g := f + 1; g < len(sizes); g++ {
			seen := map[[2]int]bool{}
			for _, row := range rows {
				seen[[2]int{row[f], row[g]}] = true
			}
			if len(seen) != sizes[f]*sizes[g] {
				t.Errorf("factors %d and %d: %d pairs of %d", f, g, len(seen), sizes[f]*sizes[g])
			}
		}
	}
	if len(rows) > 40 {
		t.Errorf("%d rows; 28 are the least", len(rows))
	}
}

// Where only one compiler is installed, all tests go without the other.
func TestBothCompilers(t *testing.T) {
	if _, err := clang(); err != nil {
		testenv.Missing(t, err)
	}
}

func TestCasesUseEveryFlavour(t *testing.T) {
	used := map[Flavour]bool{}
	for _, c := range Cases() {
		used[c.Flavour] = true
	}
	if len(used) != len(Pairwise()) {
		t.Errorf("%d flavours used of %d", len(used), len(Pairwise()))
	}
}

// saysWhatItTests matches a program that begins with a comment of whole sentences.
var saysWhatItTests = regexp.MustCompile(`^(// .+\n)*// .*\.\n(?:[^/]|$)`)

func TestProgramsSayWhatTheyTest(t *testing.T) {
	for _, p := range Programs() {
		text, err := sources.ReadFile("src/" + p.File)
		if err != nil {
			t.Error(err)
			continue
		}
		if !saysWhatItTests.Match(text) {
			t.Errorf("%s does not begin with a comment that says what it tests", p.File)
		}
	}
	files, err := sources.ReadDir("src")
	if err != nil {
		t.Fatal(err)
	}
	if listed := len(Programs()); len(files) != listed+2 {
		// and checksum.h, and what is shared by several images
		t.Errorf("%d files under src, %d programs listed", len(files), listed)
	}
}

func TestRealProgramsRunAlike(t *testing.T) {
	for _, r := range Reals() {
		t.Run(r.Name, func(t *testing.T) {
			path, err := r.Path()
			if err != nil {
				testenv.Missing(t, err)
			}
			var outputs [2]string
			for i := range outputs {
				cmd := exec.CommandContext(t.Context(), path, r.Args...)
				cmd.Env = Env()
				cmd.Stdin = strings.NewReader(r.Stdin)
				out, err := cmd.Output()
				if err != nil {
					t.Fatal(err)
				}
				outputs[i] = string(out)
			}
			if outputs[0] != outputs[1] || outputs[0] == "" {
				t.Errorf("outputs %q and %q", outputs[0], outputs[1])
			}
		})
	}
}
