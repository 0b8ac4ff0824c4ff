package recordreport_test

import (
	"fmt"
	"strings"
	"time"

	"wpptrace/internal/record"
	"wpptrace/internal/recordreport"
)

// What was lost, and what helps; whether anything was decides a status.
func ExampleLosses() {
	l := record.Losses{Events: 5, Places: 2}
	line, lost := recordreport.Losses(l, 1<<16, true)
	where, remedy, _ := strings.Cut(line, ", where ")
	fmt.Println(where, lost)
	fmt.Println(remedy[strings.LastIndex(remedy, ":")+2:])
	// Output:
	// lost: 5 events in 2 places true
	// use a larger --ring-size than 64K
}

// Two lines of a recording, a second from each other.
func ExampleLive() {
	var l recordreport.Live
	s := record.Status{Duration: time.Second, Paths: 1000, Rules: 40, Symbols: 100}
	fmt.Println(l.Line(s, time.Second))
	s.Duration, s.Paths = 2*time.Second, 4000
	fmt.Println(l.Line(s, time.Second))
	// Output:
	// 1s  1.0k paths/s  ring 0%  40 rules  ratio 10  lost 0
	// 2s  3.0k paths/s  ring 0%  40 rules  ratio 40  lost 0
}
