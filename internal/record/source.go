package record

import (
	"errors"
	"log/slog"
	"slices"
	"sync"

	"wpptrace/compress/wpp"
	"wpptrace/loader/cfg"
	"wpptrace/loader/image"
)

// A sourceTable fills the blocks of routines with what is known of their instructions: lengths,
// source lines and inlined calls.
type sourceTable struct {
	snapshot *wpp.Snapshot
	files    map[string]int
	calls    map[wpp.Call]int // numbers
}

func newSourceTable(s *wpp.Snapshot) *sourceTable {
	s.EachLine = true
	return &sourceTable{s, map[string]int{}, map[wpp.Call]int{}}
}

// fill adds the blocks of a routine. lines is nil where there are none.
func (t *sourceTable) fill(to *wpp.Routine, from *cfg.Routine, lines *image.Lines) {
	to.Blocks = make([]wpp.Block, len(from.Blocks))
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
		to.Blocks[i] = w
	}
}

// place is that of a block's first instruction, up to the line of the last, if it is in the same
// file.
func (t *sourceTable) place(lines *image.Lines, b *cfg.Block) (file, first, last int) {
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
func (t *sourceTable) spans(lines *image.Lines, b *cfg.Block) (spans []wpp.Span) {
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
func (t *sourceTable) call(stack []image.Call) (number int) {
	for _, c := range slices.Backward(stack) {
		w := wpp.Call{Name: c.Routine, In: number}
		if c.Line > 0 {
			w.File, w.Line = t.file(c.File), c.Line
		}
		n, ok := t.calls[w]
		if !ok {
			t.snapshot.Calls = append(t.snapshot.Calls, w)
			n = len(t.snapshot.Calls)
			t.calls[w] = n
		}
		number = n
	}
	return number
}

func (t *sourceTable) file(name string) int {
	i, ok := t.files[name]
	if !ok {
		i = len(t.snapshot.Files)
		t.files[name] = i
		t.snapshot.Files = append(t.snapshot.Files, name)
	}
	return i
}

// debugTroubles logs what of an image's debug information is passed over, once for each image. It
// is safe for concurrent use.
type debugTroubles struct {
	log   *slog.Logger
	mutex sync.Mutex
	noted map[*image.Image]bool
	news  []DebugInfoMissing // that report has not handed over
}

func newDebugTroubles(log *slog.Logger) *debugTroubles {
	return &debugTroubles{log: log, noted: map[*image.Image]bool{}}
}

func (d *debugTroubles) note(im *image.Image, consequence string, why error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if why == nil || errors.Is(why, image.ErrNoLines) || d.noted[im] {
		return
	}
	d.noted[im] = true
	d.news = append(d.news, DebugInfoMissing{im.Name, consequence, why})
	d.log.Warn(consequence, "image", im.Name, "why", why)
}

// report hands over what was noted since the last time.
func (d *debugTroubles) report(handle func(Event)) {
	d.mutex.Lock()
	news := d.news
	d.news = nil
	d.mutex.Unlock()
	for _, e := range news {
		handle(e)
	}
}

// notePassedOver logs debug information that is not used although it is there.
func (d *debugTroubles) notePassedOver(im *image.Image) {
	d.note(im, "debug information is passed over", im.PassedOver())
}
