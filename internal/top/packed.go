package top

import (
	"bytes"
	"fmt"
	"slices"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/format"
	"wpptrace/query"
)

// A packed is a snapshot on its way to the viewer: the file of it, but that grammars which are in
// memory are beside it as they are. To code them takes ten times as long as all else, and makes
// small what no disk has to keep.
type packed struct {
	File   []byte
	Bodies [][][]uint32 // of threads, nil where the file has the grammar
}

// mostPacked bounds a snapshot that is shown, in bytes: two processes have it in memory.
const mostPacked = 64 << 20

var errTooLarge = fmt.Errorf("the recording takes more than %d MB: what is shown is of before",
	mostPacked>>20)

// pack packs a snapshot, which it leaves as it is. It fails with errTooLarge where it would take
// too much.
func pack(s *wpp.Snapshot) (*packed, error) {
	to, p := bounded{}, &packed{Bodies: make([][][]uint32, len(s.Threads))}
	empty, err := wpp.NewGrammar([][]uint32{nil})
	if err != nil {
		return nil, err
	}
	tables := *s
	tables.Threads = slices.Clone(s.Threads)
	for i := range tables.Threads {
		t := &tables.Threads[i]
		if t.Grammar.NumSegments() > 0 {
			continue
		}
		const symbol = 4 // bytes
		if to.beside += symbol * t.Grammar.BodySymbols(); to.beside > mostPacked {
			return nil, errTooLarge
		}
		p.Bodies[i], t.Grammar = t.Grammar.Bodies(), empty
	}
	if err := format.Write(&to, &tables); err != nil {
		return nil, err
	}
	p.File = to.Bytes()
	return p, nil
}

// bounded is a buffer for a snapshot that is not too large.
type bounded struct {
	bytes.Buffer
	beside int // bytes
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.beside+b.Len()+len(p) > mostPacked {
		return 0, errTooLarge
	}
	return b.Buffer.Write(p)
}

// snapshot unpacks it.
func (p *packed) snapshot() (*wpp.Snapshot, error) {
	s, err := format.Read(bytes.NewReader(p.File), query.Sections()...)
	if err != nil {
		return nil, err
	}
	for i, bodies := range p.Bodies {
		if bodies != nil {
			if s.Threads[i].Grammar, err = wpp.NewGrammar(bodies); err != nil {
				return nil, fmt.Errorf("thread %d: %w", s.Threads[i].TID, err)
			}
		}
	}
	return s, s.Check()
}
