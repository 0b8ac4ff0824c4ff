package valuing

import (
	"io"

	"wpptrace/compress/wpp"
	"wpptrace/query"
	"wpptrace/query/valuereport"
	"wpptrace/query/values"
)

// HotData prints the hot sequences of addresses that the instructions of a snapshot accessed.
func HotData(w io.Writer, s *wpp.Snapshot, q query.HotQuery, asJSON bool) error {
	r, err := values.ReferencesOf(s, q.TIDs...)
	if err != nil {
		return err
	}
	q.Metric = query.Executions
	hot, err := query.Hot(r.Trace, q)
	switch {
	case err != nil:
		return err
	case asJSON:
		return valuereport.WriteHotDataJSON(w, s, r, hot)
	}
	return valuereport.WriteHotData(w, s, r, hot)
}
