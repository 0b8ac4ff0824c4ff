package query

import (
	"fmt"
	"testing"

	"wpptrace/compress/wpp"
	"wpptrace/query/querytest"
)

func BenchmarkHotKinds(b *testing.B) {
	for _, kind := range []HotKind{Minimal, Maximal, Larus} {
		b.Run(string(kind), func(b *testing.B) {
			q := DefaultHotQuery()
			q.Kind, q.Top = kind, 20
			ask := func(s *wpp.Snapshot) string {
				r, err := Hot(s, q)
				if err != nil {
					b.Fatal(err)
				}
				if kind == Larus {
					return "" // depends on the grammar
				}
				return fmt.Sprint(r.Found, r.Subpaths)
			}
			querytest.Compare(b, 4, ask,
				func(s *wpp.Snapshot) string { return ask(querytest.FlatOf(s)) })
		})
	}
}
