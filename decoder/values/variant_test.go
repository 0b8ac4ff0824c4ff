package values

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"wpptrace/internal/testenv"
)

// compares prints what memcmp returns of blocks that differ by chance.
const compares = `
#include <stdio.h>
#include <string.h>
int main(void) {
	unsigned char a[48], b[48];
	unsigned x = 1;
	for (int i = 0; i < 4000; i++) {
		int n = 1 + i % 48;
		for (int j = 0; j < n; j++) {
			a[j] = (x = x * 1664525 + 1013904223) >> 24;
			b[j] = x >> 10 & 15 ? a[j] : x >> 14;
		}
		printf("%d ", memcmp(a, b, n));
		for (int j = 0; j < n; j++) printf("%02x", a[j]);
		printf(" ");
		for (int j = 0; j < n; j++) printf("%02x", b[j]);
		puts("");
	}
}`

// TestVariants: what each variant of memcmp returns is known once it has been seen a few times.
func TestVariants(t *testing.T) {
	path := testenv.CompileC(t, compares, "-O1", "-fno-builtin")
	for _, tunables := range []string{"", "-AVX2", "-AVX2,-AVX512VL", "-AVX2,-AVX512VL,-SSE4_1",
		"-AVX512VL", "-AVX512VL,-RTM", "-MOVBE,-AVX512VL"} {
		cmd := exec.CommandContext(t.Context(), path)
		cmd.Env = append(os.Environ(), "GLIBC_TUNABLES=glibc.cpu.hwcaps="+tunables)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		var v variant
		all, known := 0, 0
		for i, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
			var is int32
			var a, b []byte
			if _, err := fmt.Sscanf(line, "%d %x %x", &is, &a, &b); err != nil {
				t.Fatal(err)
			}
			d, ok := differ(a, b, uint64(len(a)))
			if ok != (is != 0) {
				t.Fatalf("%q: %v: they differ: %v", tunables, line, ok)
			}
			if !ok {
				continue
			}
			all++
			got, ok := v.returns(&d)
			if ok && got != uint64(uint32(is)) {
				t.Fatalf("%q: line %d: %s: got %d", tunables, i, line, int32(got))
			}
			if ok {
				known++
			}
			v.learn(&d, uint32(is))
		}
		if known*100 < all*98 {
			t.Errorf("%q: %d of %d are known", tunables, known, all)
		}
	}
}
