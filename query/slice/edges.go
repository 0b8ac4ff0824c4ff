package slice

// A list is numbers, by instance. It grows by pieces, and so is never copied.
type list struct {
	pieces [][]uint32
	n      int
}

const (
	pieceBits = 16
	pieceSize = 1 << pieceBits
)

func (l *list) append(v uint32) {
	if l.n>>pieceBits == len(l.pieces) {
		l.pieces = append(l.pieces, make([]uint32, pieceSize))
	}
	l.pieces[l.n>>pieceBits][l.n&(pieceSize-1)] = v
	l.n++
}

func (l *list) at(i int) uint32 { return l.pieces[i>>pieceBits][i&(pieceSize-1)] }

// edges are those of all instances. Those of one instance are in one piece, which has as many as
// they are, or pieceSize.
type edges struct {
	pieces [][]edge
	starts list // of each instance: its piece, shifted by pieceBits, and where they begin there
}

// mostPieces is how many pieces there may be before the last instance.
const mostPieces = 1<<(32-pieceBits) - 1

func (x *edges) isFull() bool { return len(x.pieces) >= mostPieces }

// add adds those of the next instance.
func (x *edges) add(of []edge) {
	last := len(x.pieces) - 1
	if last < 0 || len(x.pieces[last])+max(len(of), 1) > pieceSize {
		x.pieces = append(x.pieces, make([]edge, 0, max(len(of), pieceSize)))
		last++
	}
	x.starts.append(uint32(last)<<pieceBits | uint32(len(x.pieces[last])))
	x.pieces[last] = append(x.pieces[last], of...)
}

// take takes those of the last instance away and appends them to a list.
func (x *edges) take(to []edge) []edge {
	last := x.starts.n - 1
	piece, begin := x.place(last)
	to = append(to, x.pieces[piece][begin:]...)
	x.pieces[piece] = x.pieces[piece][:begin]
	x.starts.n--
	return to
}

func (x *edges) place(instance int) (piece, begin int) {
	start := x.starts.at(instance)
	return int(start >> pieceBits), int(start & (pieceSize - 1))
}

// of are those of an instance.
func (x *edges) of(instance int) []edge {
	piece, begin := x.place(instance)
	end := len(x.pieces[piece])
	if instance+1 < x.starts.n {
		if next, at := x.place(instance + 1); next == piece {
			end = at
		}
	}
	return x.pieces[piece][begin:end]
}

// bytes is how much memory they take.
func (x *edges) bytes() (n int) {
	for _, p := range x.pieces {
		n += 4 * cap(p)
	}
	return n + 4*pieceSize*len(x.starts.pieces)
}
