package firsthit_test

import (
	"fmt"
	"log"

	"wpptrace/loader/firsthit"
	"wpptrace/loader/image"
	"wpptrace/loader/target"
	"wpptrace/loader/x86"
)

// Whether a process comes to some place of its executable in a second.
func Example() {
	p, err := target.Open(4711)
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()
	exe, err := p.Executable()
	if err != nil {
		log.Fatal(err)
	}
	defer exe.Close()
	st, err := exe.Stat()
	if err != nil {
		log.Fatal(err)
	}
	im, err := image.Open(exe, st.Size(), p.File)
	if err != nil {
		log.Fatal(err)
	}
	base, err := firsthit.Base(p, im, exe, false)
	if err != nil {
		log.Fatal(err)
	}
	s, err := firsthit.Load(p, []firsthit.Image{{Image: im, File: exe, Base: base,
		Places: []firsthit.Place{{Addr: 0x1234, Condition: x86.NoCondition}}}}, firsthit.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Put([]int{0}); err != nil {
		log.Fatal(err)
	}
	const second = 1_000_000_000
	p.Wait(second)
	n, err := s.PassagesOf(0)
	fmt.Println(n[0], err)
}
