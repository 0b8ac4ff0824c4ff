package shape

import (
	"fmt"
	"os"
	"testing"
	"time"

	"wpptrace/compress/wpp/store"
	"wpptrace/query/bounds"
)

func TestTmp(t *testing.T) {
	for _, f := range []string{"bash", "gzip", "sqlite", "perl", "python"} {
		s, err := store.ReadFile("/tmp/ov/" + f + ".wpp")
		if err != nil {
			fmt.Println(err)
			continue
		}
		t0 := time.Now()
		sh, err := Of(s, []string{"/usr/lib/x86_64-linux-gnu/libsqlite3.so.0"}[:map[bool]int{f == "sqlite": 1}[true]])
		if err != nil {
			t.Error(err)
			continue
		}
		t1 := time.Now()
		p, err := bounds.Follow(s, sh.Of)
		if err != nil {
			t.Fatal(err)
		}
		t2 := time.Now()
		m, err := bounds.New(s, sh.Of, p)
		if err != nil {
			t.Fatal(err)
		}
		m.TakeTruth(m)
		n := s.Threads[0].Grammar.Length(0)
		fmt.Println(f, n, "symbols; shapes", t1.Sub(t0), "follow", t2.Sub(t1), "new", time.Since(t2), sh.LeftOut, p.Broken, "most", m.Degree())
		for _, k := range []int{-1, 0, 1, 2, 4, m.Degree() / 3, m.Degree()} {
			t3 := time.Now()
			var fl [3]bounds.Flow
			var all bounds.Flow
			var pairs, exact uint64
			rows := 0
			for a := range m.Answers(k) {
				if a.LeftOut != "" {
					fmt.Println(a.LeftOut)
				}
				fl[a.Kind].Add(a.Flow)
				all.Add(a.Flow)
				pairs += a.Pairs
				exact += a.Exact
				rows += a.Len()
			}
			pc := func(x uint64) string { return fmt.Sprintf("%+.1f%%", 100*(float64(x)/float64(all.Real)-1)) }
			fmt.Println("  k", k, all, pc(all.Definite), pc(all.Potential), "pairs", pairs, exact, "rows", rows, fl, time.Since(t3))
		}
	}
	_ = os.Stdout
}

func sq(f string) []string {
	if f == "sqlite" {
		return []string{"/usr/lib/x86_64-linux-gnu/libsqlite3.so.0"}
	}
	return nil
}
