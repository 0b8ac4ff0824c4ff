package plan

import (
	"fmt"
	"os"
	"sort"
	"testing"
	"time"

	"wpptrace/loader/cfg"
	"wpptrace/loader/image"
)

func TestScratch(t *testing.T) {
	for _, path := range []string{"/bin/bash", "/usr/bin/python3.11", "/usr/bin/sqlite3", "/bin/gzip", "/bin/sed"} {
		t0 := time.Now()
		im, err := image.OpenFile(path)
		if err != nil {
			t.Fatal(err)
		}
		t1 := time.Now()
		p, err := cfg.Recover(im)
		if err != nil {
			t.Fatal(err)
		}
		t2 := time.Now()
		pl, err := Make(p, Options{Complete: os.Getenv("COMPLETE") != ""})
		if err != nil {
			t.Fatal(err)
		}
		t3 := time.Now()
		obs, stepped := 0, 0
		why := map[string]int{}
		for _, r := range pl.Routines {
			if r.Observed() {
				obs++
			} else {
				w := r.LeftOut
				if len(w) > 24 {
					w = w[:24]
				}
				why[w]++
			}
		}
		for _, s := range pl.Sites {
			if s.Stepped {
				stepped++
			}
		}
		fmt.Println(path, "image", t1.Sub(t0), "cfg", t2.Sub(t1), "plan", t3.Sub(t2), "routines", len(pl.Routines), "observed", obs, float64(obs)/float64(len(pl.Routines)), "sites", len(pl.Sites), "stepped", stepped)
		var ks []string
		for k := range why {
			ks = append(ks, k)
		}
		sort.Strings(ks)
		for _, k := range ks {
			fmt.Println("   ", why[k], k)
		}
	}
}
