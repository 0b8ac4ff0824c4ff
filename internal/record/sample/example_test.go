package sample_test

import (
	"errors"
	"fmt"
	"os"
	"time"

	"wpptrace/compress/wpp/samples"
	"wpptrace/internal/record/sample"
	"wpptrace/loader/target"
)

// Where this process's own CPU time goes. It takes capabilities, so that it is not run.
func ExampleStart() {
	p, err := target.Open(os.Getpid())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	s, err := sample.Start(p, sample.Options{})
	if errors.Is(err, sample.ErrNotAllowed) {
		return // go on without
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	time.Sleep(time.Second)
	c, err := s.Take()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, i := range c.Images {
		share := samples.Share{Samples: i.Total(), Of: c.Total()}
		lo, hi := share.Interval()
		fmt.Printf("%s: %.3f to %.3f\n", i.Name, lo, hi)
	}
}
