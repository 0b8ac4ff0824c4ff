package valuing

import (
	"io"

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

// Check takes ADDRESS[:SIZE].
func (q *Watch) Check(args []string) (err error) {
	q.query.Addr, q.query.Size, err = values.ParseBytes(args[0])
	return err
}

// Write writes the answer.
func (q *Watch) Write(w io.Writer, s *wpp.Snapshot) error {
	return valuereport.WriteWatch(w, s, q.query)
}
