package valuereport_test

import (
	"errors"
	"io"
	"testing"

	"wpptrace/compress/wpp"
	"wpptrace/query/querytest"
	"wpptrace/query/report"
	"wpptrace/query/slice"
	"wpptrace/query/tables"
	"wpptrace/query/valuereport"
	"wpptrace/query/values"
)

// gone is a segment's source that cannot be read any more.
type gone struct{}

var errGone = errors.New("disk failed")

func (gone) Load(uint64) (*wpp.Grammar, error) { return nil, errGone }
func (gone) Name() string                      { return "x.wpp" }

// TestValuesOfUnreadableSegments: where a segment of paths cannot be read any more, each question
// about values fails with the error that says so.
func TestValuesOfUnreadableSegments(t *testing.T) {
	s := querytest.Values()
	s.Threads[0].Grammar = wpp.Join([]*wpp.Segment{
		wpp.StoredSegment(wpp.Size{Rules: 1, Symbols: 2, Length: 2}, gone{})})
	where, err := values.Find(s, "clip")
	if err != nil {
		t.Fatal(err)
	}
	question := &values.Question{Where: where}
	for name, ask := range map[string]func() error{
		"count": func() error { _, err := values.Count(s); return err },
		"references": func() error {
			_, err := values.ReferencesOf(s)
			return err
		},
		"slice": func() error {
			_, err := slice.Ask(s, slice.Query{At: "clip", By: slice.Data})
			return err
		},
		"graph":  func() error { _, err := slice.Of(s, 0); return err },
		"tables": func() error { _, err := tables.Make(s); return err },
		"watch": func() error {
			return valuereport.WriteWatch(io.Discard, s, values.WatchQuery{Size: 1})
		},
		"dump": func() error {
			return report.Dump(io.Discard, s, report.Values, report.Whole())
		},
		"instances": func() error { return valuereport.WriteInstances(io.Discard, s, question) },
	} {
		var load *wpp.LoadError
		if err := ask(); !errors.As(err, &load) || !errors.Is(err, errGone) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
