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
	address, size, ok := strings.Cut(args[0], ":")
	if q.query.Size = 1; ok {
		q.query.Size, err = strconv.Atoi(size)
	}
	if err != nil || q.query.Size < 1 || q.query.Size > mostWatched {
		return fmt.Errorf("%q is no number of bytes from 1 to %d", size, mostWatched)
	}
	q.query.Addr, err = strconv.ParseUint(strings.TrimPrefix(address, "0x"), 16, 64)
	if err != nil {
		return fmt.Errorf("%q is no address in hex", address)
	}
	return nil
}

// Write writes the answer.
func (q *Watch) Write(w io.Writer, s *wpp.Snapshot) error {
	return valuereport.WriteWatch(w, s, q.query)
}
