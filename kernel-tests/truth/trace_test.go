package truth

import (
	"slices"
	"testing"
)

// Of signals that are delivered at once the last one's handler runs first; a handler of which
// nothing ran is none.
func TestSplitOfSignalsAtOnce(t *testing.T) {
	thread := &Thread{
		Insns: []uint64{1, 20, 10, 2, 3},
		Events: []Event{
			{Index: 1, Kind: Delivered, Signal: 10}, {Index: 1, Kind: Delivered, Signal: 20},
			{Index: 2, Kind: Returned}, {Index: 3, Kind: Returned},
			{Index: 4, Kind: Delivered, Signal: 30}, {Index: 4, Kind: Left},
		},
	}
	main, handlers := thread.Split()
	if !slices.Equal(main, []uint64{1, 2, 3}) {
		t.Errorf("outside of handlers %d", main)
	}
	if len(handlers) != 2 || handlers[0].Signal != 20 || handlers[0].Insns[0] != 20 ||
		handlers[1].Signal != 10 || handlers[1].Insns[0] != 10 {
		t.Errorf("handlers %v", handlers)
	}
}
