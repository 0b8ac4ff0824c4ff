package cfg

import (
	"fmt"
	"os"
	"regexp"
	"sort"
	"strings"
	"testing"
	"time"

	"wpptrace/loader/image"
)

func TestDev(t *testing.T) {
	for _, path := range strings.Fields(os.Getenv("DEVF")) {
		im, err := image.OpenFile(path)
		if err != nil {
			t.Fatal(err)
		}
		t0 := time.Now()
		p, err := Recover(im)
		if err != nil {
			t.Fatal(err)
		}
		el := time.Since(t0)
		why := map[string]int{}
		ex := map[string]string{}
		n, tabs, checks, idx, tail, depthU, calls := 0, 0, 0, 0, 0, 0, 0
		re := regexp.MustCompile(` (at )?[0-9a-f]{4,}$`)
		for _, r := range p.Routines {
			if r.LeftOut == "" {
				n++
			} else {
				k := re.ReplaceAllString(r.LeftOut, "")
				why[k]++
				if len(ex[k]) < 300 {
					ex[k] += " " + r.Name + ":" + r.LeftOut[strings.LastIndex(r.LeftOut, " ")+1:]
				}
			}
			for b := range r.Blocks {
				switch bl := &r.Blocks[b]; bl.End {
				case Table:
					tabs++
					if bl.Table.Check >= 0 {
						checks++
					}
					if bl.Table.Targets != nil {
						idx++
					}
				case TailInd:
					tail++
				case Call, CallInd:
					calls++
					if bl.Depth < 0 {
						depthU++
					}
				}
			}
		}
		fmt.Printf("%s: %d routines, %.2f%% exact, %v; tables %d indexed %d checked %d; tailind %d; calls %d depth unknown %d\n", path, len(p.Routines), 100*float64(n)/float64(len(p.Routines)), el, tabs, idx, checks, tail, calls, depthU)
		keys := []string{}
		for k := range why {
			keys = append(keys, k)
		}
		sort.Slice(keys, func(i, j int) bool { return why[keys[i]] > why[keys[j]] })
		for _, k := range keys {
			fmt.Printf("  %5d %s [%s]\n", why[k], k, ex[k])
		}
	}
}
