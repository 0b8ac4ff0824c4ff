package exact

import "testing"

// Of what stands on standard error only the line of wpptrace is taken out, and not what the target
// writes.
func TestCopiesStay(t *testing.T) {
	const line = "wpptrace: what process 87 (fork-gcc-O3) forks is slowed down, too, until probes " +
		"go out, for it has copies of them: nothing is kept that could put in more\n"
	for _, c := range []struct{ written, want string }{
		{line, ""},
		{"one\n" + line + "two\n", "one\ntwo\n"},
		{"wpptrace: another message\n", "wpptrace: another message\n"},
		{"forks is slowed down, too, until probes go out, \n",
			"forks is slowed down, too, until probes go out, \n"},
	} {
		if got := copiesStay.ReplaceAllString(c.written, ""); got != c.want {
			t.Errorf("%q: %q, not %q", c.written, got, c.want)
		}
	}
}
