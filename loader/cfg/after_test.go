package cfg

import (
	"slices"
	"testing"
)

// What follows a block, and whether it is a call, for each end.
func TestAfter(t *testing.T) {
	for _, test := range []struct {
		end     End
		succ    []int
		after   []int
		call    bool
		returns bool
	}{
		{Fall, []int{1}, []int{1}, false, false},
		{Jmp, []int{1}, []int{1}, false, false},
		{Jcc, []int{2, 1}, []int{2, 1}, false, false},
		{Jcc, []int{Exit, 1}, []int{Exit, 1}, false, false}, // a conditional tail jump
		{Jcc, []int{1, 1}, []int{1}, false, false},
		{Table, []int{1, 2, 3}, []int{1, 2, 3}, false, false},
		{Call, []int{1}, []int{1}, true, true},
		{CallInd, []int{1}, []int{1}, true, true},
		{NoReturn, nil, nil, true, false},
		{Trap, nil, nil, false, false},
		{Ret, nil, []int{Exit}, false, false},
		{Tail, nil, []int{Exit}, false, false},
		{TailInd, nil, []int{Exit}, false, false},
	} {
		b := Block{End: test.end, Succ: test.succ}
		if after := b.After(); !slices.Equal(after, test.after) {
			t.Errorf("end %d, successors %d: after it come %d, want %d", test.end, test.succ, after,
				test.after)
		}
		if b.IsCall() != test.call || b.CallReturns() != test.returns {
			t.Errorf("end %d: is a call: %t, which returns: %t; want %t, %t", test.end, b.IsCall(),
				b.CallReturns(), test.call, test.returns)
		}
	}
}
