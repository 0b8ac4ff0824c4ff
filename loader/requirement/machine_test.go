package requirement

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"wpptrace/loader/uprobe"
)

// Each answer that a kernel may give to a probe for a feature.
func TestFeature(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string // of the error; "": there is none
	}{
		{nil, ""},
		{fmt.Errorf("probe: %w", unix.EPERM), "forbidden, even to the privileged"},
		{fmt.Errorf("probe: %w", ebpf.ErrNotSupported), "not in this kernel"},
		{errors.New("something else"), "something else"},
	} {
		_, err := feature(func() error { return c.err })()
		if got := fmt.Sprint(err); (err == nil) != (c.want == "") ||
			!strings.Contains(got, c.want) {
			t.Errorf("%v: %v, want %q", c.err, err, c.want)
		}
	}
}

// What a kernel does without is told with the version that has it.
func TestLimits(t *testing.T) {
	for mechanism, want := range map[uprobe.Mechanism][]string{
		uprobe.Events: {"no --overhead, plan --canary (it takes Linux 6.6 or later",
			"no --lib (it takes Linux 6.10 or later",
			"no --follow-fork (it takes Linux 6.10 or later"},
		uprobe.Link: {"no --lib (it takes Linux 6.10 or later",
			"no --follow-fork (it takes Linux 6.10 or later"},
		uprobe.ProcessLink: {"none"},
	} {
		got := limitsOf(mechanism)
		for _, text := range want {
			if !strings.Contains(got, text) || strings.Count(got, "no --") > len(want) {
				t.Errorf("%v: %s; want %s", mechanism, got, want)
			}
		}
	}
}
