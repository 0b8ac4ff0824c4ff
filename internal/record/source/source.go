package source

import (
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"wpptrace/compress/wpp"
	"wpptrace/loader/cfg"
	"wpptrace/loader/image"
	"wpptrace/loader/plan"
)

// A Table is what snapshots say of the instructions of routines that were met: lengths,
// source lines and inlined calls. To find out takes long, and is done once for each. It is safe
// for concurrent use.
type Table struct {
	troubles *Troubles
	size     atomic.Uint64 // bytes

	mutex    sync.Mutex // of what follows
	read     map[*image.Image]bool
	blocks   map[int][]wpp.Block // by the numbers of routines
	files    []string
	calls    []wpp.Call
	fileAt   map[string]int
	numberOf map[wpp.Call]int
}

// NewTable returns a table that knows no routine yet, and notes what it cannot read.
func NewTable(troubles *Troubles) *Table {
	return &Table{troubles: troubles, read: map[*image.Image]bool{},
		blocks: map[int][]wpp.Block{}, fileAt: map[string]int{}, numberOf: map[wpp.Call]int{}}
}

// AddTo adds to a snapshot the blocks of the routines that its symbols are of.
func (t *Table) AddTo(s *wpp.Snapshot, parts []plan.Part) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	met := make([]bool, len(s.Routines))
	for i := range s.Symbols {
		if m := &s.Symbols[i]; !m.IsMark {
			met[m.Routine] = true
		}
	}
	first := 0
	for _, part := range parts {
		t.addPart(part, first, met[first:first+len(part.Routines)])
		first += len(part.Routines)
	}
	for i := range s.Routines {
		if met[i] {
			s.Routines[i].Blocks = t.blocks[i]
		}
	}
	s.EachLine, s.Files, s.Calls = true, slices.Clip(t.files), slices.Clip(t.calls)
}

// Bytes is how much memory the table takes.
func (t *Table) Bytes() uint64 { return t.size.Load() }

// addPart adds the routines of a part that were met, and were not before; first is the number of
// its first one.
func (t *Table) addPart(part plan.Part, first int, met []bool) {
	im := part.Program.Image
	var added []int
	for i, is := range met {
		if is && t.blocks[first+i] == nil {
			added = append(added, i)
		}
	}
	if len(added) == 0 && t.read[im] {
		return
	}
	t.read[im] = true
	lines, err := im.Lines()
	t.troubles.note(im, "the snapshot has no source lines", err)
	for _, i := range added {
		t.blocks[first+i] = t.blocksOf(part.Routines[i].Routine, lines)
	}
	if lines != nil {
		t.troubles.note(im, "the snapshot does not have all inlined calls", lines.Trouble())
		lines.Release()
	}
}

// blocksOf are the blocks of a routine. lines is nil where there are none.
func (t *Table) blocksOf(from *cfg.Routine, lines *image.Lines) []wpp.Block {
	list := make([]wpp.Block, len(from.Blocks))
	size := len(list) * int(unsafe.Sizeof(wpp.Block{}))
	for i := range from.Blocks {
		b := &from.Blocks[i]
		w := wpp.Block{Addr: b.Lo}
		for _, q := range b.Insns {
			w.Lengths = append(w.Lengths, q.Len)
		}
		if lines != nil {
			w.File, w.Line, w.Last = t.place(lines, b)
			w.Spans = t.spans(lines, b)
		}
		size += len(w.Lengths) + len(w.Spans)*int(unsafe.Sizeof(wpp.Span{}))
		list[i] = w
	}
	t.size.Add(uint64(size))
	return list
}

// place is that of a block's first instruction, up to the line of the last, if it is in the same
// file.
func (t *Table) place(lines *image.Lines, b *cfg.Block) (file, first, last int) {
	name, line, ok := lines.At(b.Insns[0].Addr)
	if !ok || line <= 0 {
		return 0, 0, 0
	}
	last = line
	if f, l, ok := lines.At(b.Insns[len(b.Insns)-1].Addr); ok && f == name && l > line {
		last = l
	}
	return t.file(name), line, last
}

// spans divides a block by the inlined calls and the source lines that its code is of; nil where
// there is one line, and nothing is inlined.
func (t *Table) spans(lines *image.Lines, b *cfg.Block) (spans []wpp.Span) {
	var stack []image.Call
	var file string
	for i := range b.Insns {
		addr := b.Insns[i].Addr
		calls := lines.Inlined(addr)
		name, line, ok := lines.At(addr)
		if !ok || line <= 0 {
			name, line = "", 0
		}
		if i == 0 || name != file || line != spans[len(spans)-1].Line ||
			!slices.Equal(calls, stack) {
			x := wpp.Span{From: i, Call: t.call(calls), Line: line, Last: line}
			if line > 0 {
				x.File = t.file(name)
			}
			spans = append(spans, x)
		}
		spans[len(spans)-1].To, stack, file = i+1, calls, name
	}
	if len(spans) == 1 && spans[0].Call == 0 {
		return nil
	}
	return spans
}

// call returns the number of the innermost of some calls in each other.
func (t *Table) call(stack []image.Call) (number int) {
	for _, c := range slices.Backward(stack) {
		w := wpp.Call{Name: c.Routine, In: number}
		if c.Line > 0 {
			w.File, w.Line = t.file(c.File), c.Line
		}
		n, ok := t.numberOf[w]
		if !ok {
			t.calls = append(t.calls, w)
			n = len(t.calls)
			t.numberOf[w] = n
		}
		number = n
	}
	return number
}

func (t *Table) file(name string) int {
	i, ok := t.fileAt[name]
	if !ok {
		i = len(t.files)
		t.fileAt[name] = i
		t.files = append(t.files, name)
	}
	return i
}

// Missing says what of an image's debug information is passed over.
type Missing struct {
	Image       string // its name
	Consequence string
	Err         error // why
}

// Troubles notes and logs what of an image's debug information is passed over, once for each image.
// It is safe for concurrent use.
type Troubles struct {
	log   *slog.Logger
	mutex sync.Mutex
	noted map[*image.Image]bool
	news  []Missing // that News has not handed over
}

// NewTroubles returns one that has noted nothing.
func NewTroubles(log *slog.Logger) *Troubles {
	return &Troubles{log: log, noted: map[*image.Image]bool{}}
}

func (d *Troubles) note(im *image.Image, consequence string, why error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if why == nil || errors.Is(why, image.ErrNoLines) || d.noted[im] {
		return
	}
	d.noted[im] = true
	d.news = append(d.news, Missing{im.Name, consequence, why})
	d.log.Warn(consequence, "image", im.Name, "why", why)
}

// News hands over what was noted since the last time.
func (d *Troubles) News() []Missing {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	news := d.news
	d.news = nil
	return news
}

// NotePassedOver logs debug information that is not used although it is there.
func (d *Troubles) NotePassedOver(im *image.Image) {
	d.note(im, "debug information is passed over", im.PassedOver())
}
