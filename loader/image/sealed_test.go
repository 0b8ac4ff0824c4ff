package image

import (
	"fmt"
	"strings"
	"testing"
)

// TestSealed: what data holds that is read-only once the loader has written it, where that follows
// from the file.
func TestSealed(t *testing.T) {
	const source = `#include <stdio.h>
static int less(int n) { return n - 1; }
const struct { long n; int (*f)(int); int (*g)(const char *); } entry = {42, less, puts};
int written = 7;
int main(int n, char **v) { return entry.f(n) + entry.g(v[0]) + written; }`
	for _, c := range []struct {
		flags string
		known bool
	}{{"-pie -fPIE -Wl,-z,relro,-z,now", true}, {"-pie -fPIE -Wl,-z,norelro", false},
		{"-static-pie -fPIE", false}} {
		path := compile(t, "sealed.c", source, strings.Fields(c.flags)...)
		at := map[string]uint64{}
		for line := range strings.Lines(run(t, "", "nm", path)) {
			var addr uint64
			var kind, name string
			if _, err := fmt.Sscanf(line, "%x %s %s", &addr, &kind, &name); err == nil {
				at[name] = addr
			}
		}
		im, err := OpenFile(path)
		if err != nil {
			t.Fatal(err)
		}
		entry := at["entry"]
		if v, relative, ok := im.Sealed(entry); ok != c.known || ok && (v != 42 || relative) {
			t.Errorf("%s: a number is %d, %v, %v", c.flags, v, relative, ok)
		}
		v, relative, ok := im.Sealed(entry + 8)
		if ok != c.known || ok && (v != at["less"] || !relative) {
			t.Errorf("%s: an address is %x, %v, %v", c.flags, v, relative, ok)
		}
		for _, addr := range []uint64{entry + 4, entry + 16, at["written"],
			at["_DYNAMIC"]} {
			if v, _, ok := im.Sealed(addr); ok {
				t.Errorf("%s: %#x is known to be %x", c.flags, addr, v)
			}
		}
		im.Close()
	}
}
