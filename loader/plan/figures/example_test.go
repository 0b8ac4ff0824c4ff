package figures_test

import (
	"fmt"
	"log"
	"os"

	"wpptrace/loader/cfg/recovery"
	"wpptrace/loader/image"
	"wpptrace/loader/plan/figures"
	"wpptrace/loader/plan/planner"
)

func ExampleOf() {
	file, err := os.Open("/bin/true")
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		log.Fatal(err)
	}
	im, err := image.Open(file, info.Size(), "true")
	if err != nil {
		log.Fatal(err)
	}
	program, err := recovery.Recover(im)
	if err != nil {
		log.Fatal(err)
	}
	p, err := planner.Make(program, planner.Options{})
	if err != nil {
		log.Fatal(err)
	}
	f := figures.Of(p)
	left := 0
	for _, l := range f.LeftOut {
		left += l.Routines
	}
	fmt.Println(f.Traced+left == f.Routines, f.Probes > f.SingleStep, f.ExpectedHits > 0)
	// Output: true true true
}
