package valuing

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"wpptrace/compress/wpp"
	"wpptrace/query/valuereport"
	"wpptrace/query/values"
)

// Watch is what wpptrace watch asks.
type Watch struct{ query values.WatchQuery }

// Add adds the flags.
func (q *Watch) Add(f *pflag.FlagSet) {
	f.BoolVar(&q.query.WritesOnly, "writes", false, "only who wrote")
	f.IntVar(&q.query.TID, "tid", 0, "only thread `TID`")
}

// mostWatched is how many bytes are watched at most.
const mostWatched = 4096

// Check takes ADDRESS[:SIZE].
func (q *Watch) Check(args []string) (err error) {
	q.query.Addr, q.query.Size, err = parseBytes(args[0])
	return err
}

// parseBytes reads ADDRESS[:SIZE].
func parseBytes(text string) (addr uint64, n int, err error) {
	address, size, ok := strings.Cut(text, ":")
	if n = 1; ok {
		n, err = strconv.Atoi(size)
	}
	if err != nil || n < 1 || n > mostWatched {
		return 0, 0, fmt.Errorf("%q is no number of bytes from 1 to %d", size, mostWatched)
	}
	addr, err = strconv.ParseUint(strings.TrimPrefix(address, "0x"), 16, 64)
	if err != nil {
		return 0, 0, fmt.Errorf("%q is no address in hex", address)
	}
	return addr, n, nil
}

// Write writes the answer.
func (q *Watch) Write(w io.Writer, s *wpp.Snapshot) error {
	return valuereport.WriteWatch(w, s, q.query)
}
