package valuing_test

import (
	"strings"
	"testing"

	"wpptrace/compress/wpp"
	"wpptrace/internal/valuing"
	"wpptrace/query/querytest"
)

// TestRecorded: when a recording ends it is said how much is known, how the program ended, and what
// to ask next; of paths alone nothing.
func TestRecorded(t *testing.T) {
	const ask = "ask by wpptrace values --stat x.wpp, which prints what is not known, values --at, " +
		"values --var, slice, watch and step"
	killed := querytest.Values()
	killed.Figures.WaitStatus = new(uint32(6))
	for want, s := range map[string]*wpp.Snapshot{
		"": {},
		"values: 11 instructions, of which 81.82% are confirmed, 0.00% unconfirmed, 18.18% " +
			"unknown\n" + ask: querytest.Values(),
		"values: 9 instructions, of which 88.89% are confirmed, 0.00% unconfirmed, 11.11% unknown\n" +
			"ended by SIGSEGV at clip+0xb: w[7000:8], in thread 4711\n" + ask: querytest.Faulted(),
		"values: 11 instructions, of which 81.82% are confirmed, 0.00% unconfirmed, 18.18% " +
			"unknown\nended by SIGABRT: no instruction that was traced faulted\n" + ask: killed,
	} {
		got, err := valuing.Recorded(s, "x.wpp")
		if err != nil || strings.Join(got, "\n") != want {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
}
