package rules

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"wpptrace/compress/wpp"
	"wpptrace/query/querytest"
)

func TestOrderOfWorkedExamples(t *testing.T) {
	for _, tt := range []struct {
		texts                          []string
		p, q                           string
		everP, alwaysP, everQ, alwaysQ bool
	}{
		{[]string{"abbcabbcabbc"}, "a", "c", true, true, true, false},
		{[]string{"abbcabbcabbc"}, "c", "a", true, false, true, true},
		{[]string{"xaxb"}, "a", "b", true, true, false, false},
		{[]string{"a", "b"}, "a", "b", false, false, false, false},
		{[]string{"ab", "b"}, "a", "b", true, false, false, false},
		{[]string{"aa"}, "a", "a", true, false, true, false},
	} {
		o, err := PathOrder(querytest.Letters(tt.texts...), tt.p, tt.q)
		if err != nil {
			t.Fatal(err)
		}
		if o.EverP != tt.everP || o.AlwaysP != tt.alwaysP || o.EverQ != tt.everQ ||
			o.AlwaysQ != tt.alwaysQ {
			t.Errorf("%q: %+v", tt.texts, o)
		}
	}
}

// TestOrderBeyondCounting: where paths ran more often than can be counted, equal counts do not say
// that none was first.
func TestOrderBeyondCounting(t *testing.T) {
	s := querytest.Letters("ab")
	s.Threads[0].Grammar = querytest.Repeated(t, 64, []uint32{wpp.RuleSymbol(1)}, []uint32{0, 1})
	o, err := PathOrder(s, "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	if !o.AlwaysP || !o.EverQ || o.AlwaysQ {
		t.Errorf("a always before b %v, b ever before a %v, always %v", o.AlwaysP, o.EverQ,
			o.AlwaysQ)
	}
}

func TestOrderEqualsBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkOrder(t, querytest.DrawSnapshot(t))
	})
}

// checkOrder compares the order of a and b with that of the streams.
func checkOrder(t querytest.Fataler, s *wpp.Snapshot) {
	a, b := querytest.Letter(s, 'a'), querytest.Letter(s, 'b')
	got, err := PathOrder(s, "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	var want Order
	for _, stream := range querytest.Streams(s) {
		for i, sym := range stream {
			switch sym {
			case a:
				want.PRan++
				want.PAfterQ += uint64(min(1, slices.Index(stream[:i], b)+1))
			case b:
				want.QRan++
				want.QAfterP += uint64(min(1, slices.Index(stream[:i], a)+1))
			}
		}
	}
	if got.PRan != want.PRan || got.QRan != want.QRan || got.PAfterQ != want.PAfterQ ||
		got.QAfterP != want.QAfterP {
		t.Fatalf("%+v, want %+v", got, want)
	}
}
