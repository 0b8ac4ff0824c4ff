package cfg

// Exit is the node that every way out of a routine leads to, beside the indices of its blocks.
const Exit = -1

var toExit = []int{Exit}

// After returns what may run after the block in the same activation, each node once: indices of
// blocks, and Exit where the activation ends. A call goes on to its continuation; landing pads and
// second returns are not among these. The list is shared: it is not to be changed.
func (b *Block) After() []int {
	switch b.End {
	case Ret, Tail, TailInd:
		return toExit
	case NoReturn, Trap:
		return nil
	case Jcc:
		if b.Succ[0] == b.Succ[1] {
			return b.Succ[:1]
		}
	}
	return b.Succ
}

// IsCall reports whether a call instruction ends the block, also one that never returns.
func (b *Block) IsCall() bool { return b.CallReturns() || b.End == NoReturn }

// CallReturns reports whether a call ends the block that may return: Succ[0] is its continuation.
func (b *Block) CallReturns() bool { return b.End == Call || b.End == CallInd }
