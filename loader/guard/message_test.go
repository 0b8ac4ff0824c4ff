package guard

import (
	"errors"
	"math"
	"net"
	"os"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"wpptrace/loader/uprobe"
)

// pair returns both ends of a connection.
func pair(t *testing.T) (a, b *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*net.UnixConn
	for i, fd := range fds {
		if ends[i], err = connection(os.NewFile(uintptr(fd), "end")); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ends[i].Close() })
	}
	return ends[0], ends[1]
}

// A request comes with its descriptors, however long it is.
func TestMessages(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString("handed on"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		q     request
		files []*os.File
	}{
		{"short", request{Remove: []int{7}}, nil},
		{"with descriptors", request{Watch: true}, []*os.File{file, file, file}},
		{"long", request{Probe: &placement{uprobe.Events,
			slices.Repeat([]uint64{math.MaxUint64}, 1<<18), make([]uint64, 1<<18), 12, AnyCPU}},
			[]*os.File{file}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := pair(t)
			sent := make(chan error, 1)
			go func() { sent <- send(a, &c.q, c.files...) }()
			var got request
			fds, err := receive(b, &got)
			if err := errors.Join(err, <-sent); err != nil {
				t.Fatal(err)
			}
			defer closeAll(fds)
			if diff := cmp.Diff(c.q, got); diff != "" {
				t.Error(diff)
			}
			if len(fds) != len(c.files) {
				t.Fatalf("%d descriptors, not %d", len(fds), len(c.files))
			}
			for _, fd := range fds {
				text := make([]byte, 9)
				if _, err := unix.Pread(fd, text, 0); err != nil || string(text) != "handed on" {
					t.Errorf("read %q, %v", text, err)
				}
			}
		})
	}
}

// What the kernel has refused is reported as the kernel reported it.
func TestRefusal(t *testing.T) {
	a, b := pair(t)
	for _, want := range []error{unix.ESRCH, unix.EPERM, ebpf.ErrNotSupported} {
		sent := make(chan error, 1)
		go func() { sent <- send(a, &reply{Refusal: refusalOf(want)}) }()
		var r reply
		if _, err := receive(b, &r); err != nil {
			t.Fatal(errors.Join(err, <-sent))
		}
		if !errors.Is(r.Refusal, want) || errors.Is(r.Refusal, unix.EIO) ||
			r.Refusal.Error() != want.Error() {
			t.Errorf("%v has become %v", want, r.Refusal)
		}
		<-sent
	}
}

// Whatever is received, it comes to an end.
func FuzzReceive(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{4, 0, 0, 0, 1})
	f.Add([]byte{255, 255, 255, 255, 1, 2, 3})
	f.Fuzz(func(t *testing.T, data []byte) {
		a, b := pair(t)
		go func() {
			a.Write(data)
			a.Close()
		}()
		for {
			var q request
			fds, err := receive(b, &q)
			closeAll(fds)
			if err != nil {
				return
			}
		}
	})
}
