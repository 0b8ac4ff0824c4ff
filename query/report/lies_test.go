package report

import (
	"io"
	"math"
	"runtime"
	"testing"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/store"
	"wpptrace/query"
	"wpptrace/query/rules"
)

// TestLyingSegments: a file of two kilobytes that declares a thousand million rules had some
// questions allocate for as many before they read one.
func TestLyingSegments(t *testing.T) {
	for name, ask := range map[string]func(s *wpp.Snapshot) error{
		"figure 8": func(s *wpp.Snapshot) error { return WriteFigure8(io.Discard, s) },
		"rules": func(s *wpp.Snapshot) error {
			_, err := rules.Check(s, []string{"demo#0 before demo#1", "demo#0 and demo#1 balanced"})
			return err
		},
		"find": func(s *wpp.Snapshot) error {
			_, err := rules.Find(s, rules.FindQuery{Pattern: "demo", First: 1, Top: 1})
			return err
		},
		"order": func(s *wpp.Snapshot) error {
			_, err := rules.PathOrder(s, "demo#0", "demo#1")
			return err
		},
		"context": func(s *wpp.Snapshot) error {
			_, err := query.ContextOf(s, "demo#0", 2)
			return err
		},
		"hot": func(s *wpp.Snapshot) error {
			_, err := query.Hot(s, query.DefaultHotQuery())
			return err
		},
		"stat":    func(s *wpp.Snapshot) error { _, err := query.NewStat(s, 0); return err },
		"dump":    func(s *wpp.Snapshot) error { return Dump(io.Discard, s, Paths, Whole()) },
		"grammar": func(s *wpp.Snapshot) error { return Dump(io.Discard, s, Grammar, Whole()) },
		"dump's part": func(s *wpp.Snapshot) error {
			return Dump(io.Discard, s, Paths, Part{From: 1 << 20, To: math.MaxUint64})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := store.ReadFile("../../compress/wpp/format/testdata/version3-lies.wpp")
			if err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err = ask(s)
			runtime.ReadMemStats(&after)
			if allocated := after.TotalAlloc - before.TotalAlloc; err == nil || allocated > 64<<20 {
				t.Errorf("%d MB allocated; error %v", allocated>>20, err)
			}
		})
	}
}
