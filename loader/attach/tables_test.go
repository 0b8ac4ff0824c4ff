package attach

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"wpptrace/internal/testenv"
)

// TestTablePages: the page of a table that a probed jump reads is found, be it that the file has
// the addresses in it or that the loader writes them there.
func TestTablePages(t *testing.T) {
	const jumps = `
		static int sum;
		#define COUNT __asm__ volatile("lock incl %0" : "+m"(sum))
		__attribute__((noinline)) void step(unsigned n) {
			static void *const to[] = {&&first, &&second, &&third};
			goto *to[n % 3];
		first:
			COUNT;
		second:
			COUNT;
		third:
			COUNT;
		}
		int main(int n, char **v) { step(n); }`
	dir := t.TempDir()
	source := filepath.Join(dir, "jumps.c")
	if err := os.WriteFile(source, []byte(jumps), 0o644); err != nil {
		t.Fatal(err)
	}
	for section, flags := range map[string][]string{
		".rodata":      {"-no-pie", "-fno-pie"},
		".data.rel.ro": {"-pie", "-fPIE"},
	} {
		path := filepath.Join(dir, section)
		args := append(flags, "-O2", "-o", path, source)
		if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
			testenv.Missing(t, err)
			t.Fatalf("%s", out)
		}
		m := newMapped(&planOf(t, path).plan.Parts[0], 0)
		in := m.image.Section(section)
		pages := m.tablePages()
		if in == nil || len(pages) != 1 || pages[0] < in.Addr&^(page-1) ||
			pages[0] > in.Addr+uint64(len(in.Data)) {
			t.Errorf("%s: pages %x, not one of %+v", section, pages, in)
		}
	}
}
