package requirement

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
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
