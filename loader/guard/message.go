package guard

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/cap"

	"wpptrace/loader/uprobe"
)

// A request is what wpptrace asks of the guard, one at a time: the first field that is set.
type request struct {
	// over who is stopped: with the descriptors of the map of stops, and of the links of those who
	// keep it
	Watch   bool
	Prime   *priming
	Probe   *placement   // with the descriptors of a file and of a program
	Remove  []int        // the numbers of placements, which begin to go,
	CPU     int          // on that, or AnyCPU;
	InTurn  int          // or, not 0, in turn, where this process runs
	Settle  bool         // wait until those that have begun to go are gone
	Confine *confinement // give up all capabilities but those
}

// A priming has the kernel change probes at once, for a time.
type priming struct {
	Mechanism uprobe.Mechanism
	Stay      time.Duration
}

// A placement is a program at places of a file, in the memory of a process.
type placement struct {
	Mechanism        uprobe.Mechanism
	Offsets, Cookies []uint64
	PID              int
	CPU              int // on which it is to be made, or AnyCPU
}

type confinement struct{ Keep []cap.Value }

// A reply has the number of a placement, from 1, or says why there is none.
type reply struct {
	Placement int
	Took      time.Duration // that the kernel took to put its probes in
	Refusal   *refusal
}

// A refusal is an error of the guard's, as far as it is distinguished from others.
type refusal struct {
	Text        string
	Errno       unix.Errno
	Unsupported bool // ebpf.ErrNotSupported
}

func refusalOf(err error) *refusal {
	if err == nil {
		return nil
	}
	r := &refusal{Text: err.Error(), Unsupported: errors.Is(err, ebpf.ErrNotSupported)}
	errors.As(err, &r.Errno)
	return r
}

func (r *refusal) Error() string { return r.Text }

func (r *refusal) Is(target error) bool {
	return target == ebpf.ErrNotSupported && r.Unsupported ||
		r.Errno != 0 && (r.Errno.Is(target) || target == r.Errno)
}

// mostFiles is how many descriptors a message may have.
const mostFiles = 4

// maxMessage bounds what is read for a message, bytes: far more than a placement of all that a plan
// may have.
const maxMessage = 1 << 30

// send sends a message, with descriptors.
func send(c *net.UnixConn, message any, files ...*os.File) error {
	var b bytes.Buffer
	b.Write(make([]byte, 4))
	if err := gob.NewEncoder(&b).Encode(message); err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	binary.LittleEndian.PutUint32(b.Bytes(), uint32(b.Len()-4))
	var rights []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd())
		}
		rights = unix.UnixRights(fds...)
	}
	if _, _, err := c.WriteMsgUnix(b.Next(4), rights, nil); err != nil {
		return err
	}
	_, err := c.Write(b.Bytes())
	return err
}

// receive receives a message, and returns its descriptors, which the caller closes. At the end of
// the connection it returns io.EOF.
func receive(c *net.UnixConn, message any) (fds []int, err error) {
	size, rights := make([]byte, 4), make([]byte, unix.CmsgSpace(4*mostFiles))
	n, m, _, _, err := c.ReadMsgUnix(size, rights)
	if err == nil && n == 0 {
		err = io.EOF
	}
	if err != nil {
		return nil, err
	}
	if fds, err = descriptors(rights[:m]); err != nil {
		return nil, err
	}
	if err := receiveBody(c, size, n, message); err != nil {
		closeAll(fds)
		return nil, err
	}
	return fds, nil
}

// receiveBody receives a message of whose size n bytes have come.
func receiveBody(c *net.UnixConn, size []byte, n int, message any) error {
	if _, err := io.ReadFull(c, size[n:]); err != nil {
		return err
	}
	length := binary.LittleEndian.Uint32(size)
	if length > maxMessage {
		return fmt.Errorf("a message of %d bytes", length)
	}
	var body bytes.Buffer // grows by what comes, whatever was announced
	if _, err := io.CopyN(&body, c, int64(length)); err != nil {
		return err
	}
	return gob.NewDecoder(&body).Decode(message)
}

func descriptors(control []byte) (fds []int, err error) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil, err
	}
	for i := range messages {
		some, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return nil, err
		}
		fds = append(fds, some...)
	}
	return fds, nil
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}
