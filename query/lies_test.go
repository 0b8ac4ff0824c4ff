package query

import (
	"io"
	"math"
	"runtime"
	"testing"

	"wpptrace/compress/wpp"
)

// TestLyingSegments: a file of two kilobytes that declares a thousand million rules had some
// questions allocate for as many before they read one.
func TestLyingSegments(t *testing.T) {
	for name, ask := range map[string]func(s *wpp.Snapshot) error{
		"figure 8":  func(s *wpp.Snapshot) error { return WriteFigure8(io.Discard, s) },
		"ancestors": func(s *wpp.Snapshot) error { NearestCommonAncestors(s.Threads[0].Grammar, 0, 1); return nil },
		"rules": func(s *wpp.Snapshot) error {
			_, err := CheckRules(s, []string{"demo#0 before demo#1", "demo#0 and demo#1 balanced"})
			return err
		},
		"find": func(s *wpp.Snapshot) error {
			_, err := Find(s, FindQuery{Pattern: "demo", First: 1, Top: 1})
			return err
		},
		"order":   func(s *wpp.Snapshot) error { _, err := PathOrder(s, "demo#0", "demo#1"); return err },
		"context": func(s *wpp.Snapshot) error { _, err := ContextOf(s, "demo#0", 2); return err },
		"hot":     func(s *wpp.Snapshot) error { _, err := Hot(s, DefaultHotQuery()); return err },
		"stat":    func(s *wpp.Snapshot) error { NewStat(s, 0); return nil },
		"dump":    func(s *wpp.Snapshot) error { return Dump(io.Discard, s, Paths) },
		"grammar": func(s *wpp.Snapshot) error { return Dump(io.Discard, s, Grammar) },
		"dump's part": func(s *wpp.Snapshot) error {
			return DumpPart(io.Discard, s, Paths, Part{From: 1 << 20, To: math.MaxUint64})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := wpp.ReadFile("../compress/wpp/testdata/version3-lies.wpp")
			if err != nil {
				t.Fatal(err)
			}
			safely := func() (err error) {
				defer wpp.Recover(&err)
				return ask(s)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err = safely()
			runtime.ReadMemStats(&after)
			if allocated := after.TotalAlloc - before.TotalAlloc; err == nil || allocated > 64<<20 {
				t.Errorf("%d MB allocated; error %v", allocated>>20, err)
			}
		})
	}
}
