package wet

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/klauspost/compress/zstd"
)

// An untouched is a load of bytes that the segment had not touched before.
type untouched struct {
	at   int // of what the log says of it first, among what it says
	addr uint64
	size uint8
}

// MostInGroup is how many segments a group has at most.
const MostInGroup = 32

// A run is bytes of memory that segments of a group have in common: what they load there first,
// unless the log of a segment says otherwise.
type run struct {
	addr uint64
	data []byte
}

// end is the address behind it.
func (r *run) end() uint64 { return r.addr + uint64(len(r.data)) }

// A noted is some of 8 bytes that a segment has loaded and had not touched before.
type noted struct {
	addr    uint64 // a multiple of 8
	data    [8]byte
	has     uint8 // a bit for each
	segment uint8
}

// note appends what a log has loaded like that, of the segment of a number.
func (l *Log) note(to []noted, segment int) []noted {
	for _, u := range l.untouched {
		if code := l.said[u.at].number; code != otherwise && code != otherwiseMaybe {
			continue
		}
		x := noted{segment: uint8(segment)}
		for k := range uint64(u.size) {
			i := (u.addr + k) % 8
			word := l.said[u.at+1+int(k/8)].number
			x.addr, x.data[i], x.has = u.addr+k-i, byte(word>>(k%8*8)), x.has|1<<i
			if i == 7 || k == uint64(u.size)-1 {
				to, x.has = append(to, x), 0
			}
		}
	}
	return to
}

// common returns the bytes that several of some logs load and say alike: what the first one has of
// them, and what is another for each of the others. Each is ascending by addresses. Of more pages
// than an image may have those above are left out: each segment says itself what it has there.
func common(logs []*Log) (list [][]run, any bool) {
	list = make([][]run, len(logs))
	if len(logs) < 2 {
		return list, false
	}
	var all []noted
	for i, l := range logs {
		all = l.note(all, i)
	}
	slices.SortFunc(all, func(a, b noted) int {
		return cmp.Or(cmp.Compare(a.addr, b.addr), cmp.Compare(a.segment, b.segment))
	})
	pages, last := 0, uint64(0) // that have some, and the last one
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].addr == all[0].addr {
			n++
		}
		page := all[0].addr / imagePageSize
		if pages == mostImagePages && page != last {
			break
		}
		has := false
		for i := range 8 {
			has = commonByte(list, all[:n], i) || has
		}
		if has && (pages == 0 || page != last) {
			pages, last = pages+1, page
		}
		all = all[n:]
	}
	return list, pages > 0
}

// commonByte adds what several of those that have noted 8 bytes say alike, one after the other, of
// one of these.
func commonByte(list [][]run, of []noted, number int) (any bool) {
	var last noted
	times := 0
	for _, x := range of {
		switch {
		case x.has>>number&1 == 0:
		case times == 0 || x.data[number] != last.data[number]:
			last, times = x, 1
		default:
			if times++; times == 2 {
				from := last.segment
				if !any { // nothing else is there before
					from = 0
				}
				add(&list[from], last.addr+uint64(number), last.data[number])
				any = true
			}
		}
	}
	return any
}

// add adds a byte behind those that are there.
func add(to *[]run, addr uint64, b byte) {
	if n := len(*to); n == 0 || (*to)[n-1].end() != addr {
		*to = append(*to, run{addr: addr})
	}
	r := &(*to)[len(*to)-1]
	r.data = append(r.data, b)
}

// appendCommon appends what segments have in common as files have it: a column of how many runs
// each has, where they begin, and how long they are, and one of their bytes.
func appendCommon(b []byte, list [][]run) []byte {
	var where, data []byte
	for _, runs := range list {
		where = binary.AppendUvarint(where, uint64(len(runs)))
		end := uint64(0)
		for _, r := range runs {
			where = binary.AppendUvarint(where, r.addr-end)
			where = binary.AppendUvarint(where, uint64(len(r.data)-1))
			data = append(data, r.data...)
			end = r.end()
		}
	}
	return appendColumn(appendColumn(b, where), data)
}

func appendColumn(b, column []byte) []byte {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false),
		zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithWindowSize(1<<20),
		zstd.WithAllLitEntropyCompression(true))
	if err != nil {
		panic("wet: " + err.Error()) // the options are wrong
	}
	packed := w.EncodeAll(column, nil)
	b = binary.AppendUvarint(b, uint64(len(column)))
	return append(binary.AppendUvarint(b, uint64(len(packed))), packed...)
}

const (
	// mostCommon bounds how many bytes a column may have.
	mostCommon = 1 << 26
	// mostImagePages bounds an image, to some 150 MB: no stretch touches more, see memory.Memory,
	// but the segments of a group may, together.
	mostImagePages = 1 << 15
)

// A together is what segments have in common, as columns.
type together struct{ where, data []byte }

// readCommon reads what appendCommon has appended.
func readCommon(r *reader) (c together) {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(mostCommon))
	if err != nil {
		panic("wet: " + err.Error())
	}
	defer d.Close()
	for _, column := range [2]*[]byte{&c.where, &c.data} {
		size := r.count(mostCommon, "common bytes")
		packed := r.take(r.count(len(r.rest), "bytes"))
		if r.err != nil {
			return c
		}
		*column, err = d.DecodeAll(packed, nil)
		if err != nil || len(*column) != size {
			r.fail("common bytes that are damaged")
			return c
		}
	}
	return c
}

// imageOf is that of a segment, by its number in its group.
func (c *together) imageOf(segment int) (*image, error) {
	m := &image{}
	where, data := reader{rest: c.where}, reader{rest: c.data}
	for range segment + 1 {
		end := uint64(0)
		for range where.count(len(where.rest), "common ranges") {
			addr := end + where.number()
			n := where.count(max(len(data.rest)-1, 0), "common bytes") + 1
			if m.put(addr, data.take(n)); len(m.pages) > mostImagePages {
				return nil, errTooLarge
			}
			end = addr + uint64(n)
		}
	}
	return m, cmp.Or(where.err, data.err)
}

// An image is what a segment has in common with others of its group, by the numbers of pages. The
// zero value is empty.
type image struct {
	pages  map[uint64]*imagePage
	number uint64 // of last
	last   *imagePage
}

const imagePageSize = 4096

type imagePage struct {
	data [imagePageSize]byte
	has  [imagePageSize / 64]uint64
}

// add makes the image of the segment before in a group that of the next one, by its runs.
func (m *image) add(runs []run) {
	for i := range runs {
		m.put(runs[i].addr, runs[i].data)
	}
}

func (m *image) put(addr uint64, data []byte) {
	for len(data) > 0 {
		p, at := m.page(addr/imagePageSize), addr%imagePageSize
		if p == nil {
			if m.pages == nil {
				m.pages = map[uint64]*imagePage{}
			}
			p = &imagePage{}
			m.pages[addr/imagePageSize], m.last = p, p
		}
		n := copy(p.data[at:], data)
		for i, end := at, at+uint64(n); i < end; {
			some := min(64-i%64, end-i)
			p.has[i/64] |= ^uint64(0) >> (64 - some) << (i % 64)
			i += some
		}
		addr, data = addr+uint64(n), data[n:]
	}
}

func (m *image) page(number uint64) *imagePage {
	if m.last == nil || m.number != number {
		m.number, m.last = number, m.pages[number]
	}
	return m.last
}

// read copies some bytes, 1 to 64, if the image has all of them.
func (m *image) read(addr uint64, to []byte) bool {
	if len(m.pages) == 0 {
		return false
	}
	at := addr % imagePageSize
	if n := int(imagePageSize - at); n < len(to) {
		var first [64]byte
		if !m.read(addr, first[:n]) || !m.read(addr+uint64(n), to[n:]) {
			return false
		}
		copy(to, first[:n])
		return true
	}
	p := m.page(addr / imagePageSize)
	if p == nil {
		return false
	}
	has := p.has[at/64] >> (at % 64)
	if over := int(at%64) + len(to) - 64; over > 0 {
		has |= p.has[at/64+1] << (64 - at%64)
	}
	if all := ^uint64(0) >> (64 - len(to)); has&all != all {
		return false
	}
	copy(to, p.data[at:])
	return true
}

// without returns what a log says where what an image has need not be said.
func (l *Log) without(m *image) sayings {
	if len(m.pages) == 0 {
		return l.said
	}
	list := make(sayings, 0, len(l.said))
	at := 0
	for _, u := range l.untouched {
		var held [64]byte
		if !m.read(u.addr, held[:u.size]) {
			continue
		}
		list = append(list, l.said[at:u.at]...)
		s := l.said[u.at]
		at = u.at + 1
		s.about |= stateInCommon
		switch s.number {
		case asExpected: // nothing is known
			s.number = notKnown
		case otherwise, otherwiseMaybe:
			words := l.said[at:][:(u.size+7)/8]
			if sayBytes(words, held[:u.size]) {
				at += len(words)
				s.number -= otherwise // asExpected, or asPredicted
			}
		}
		list = append(list, s)
	}
	return append(list, l.said[at:]...)
}

// sayBytes reports whether words say these bytes.
func sayBytes(words []said, b []byte) bool {
	for i, w := range words {
		var word [8]byte
		copy(word[:], b[8*i:])
		if binary.LittleEndian.Uint64(word[:]) != w.number {
			return false
		}
	}
	return true
}
