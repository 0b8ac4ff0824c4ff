package samples_test

import (
	"fmt"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/samples"
)

func ExampleShare_Interval() {
	lo, hi := samples.Share{Samples: 81, Of: 263}.Interval()
	fmt.Printf("%.3f to %.3f\n", lo, hi)
	// Output: 0.254 to 0.368
}

func ExampleOf() {
	p := &samples.Profile{Kernel: 30, Files: []samples.File{
		{Path: "/usr/lib/libc.so.6", Image: samples.NoImage, Samples: 70}}}
	s := &wpp.Snapshot{Sections: []*wpp.Section{p.Section()}}
	read, err := samples.Of(s)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(read.Kernel, "of", read.Total())
	// Output: 30 of 100
}
