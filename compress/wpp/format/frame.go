package format

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"sync"

	"github.com/klauspost/compress/zstd"
	"google.golang.org/protobuf/proto"

	"wpptrace/compress/wpp"
)

// A .wpp file is a header and a sequence of sections. All numbers are little-endian; all checksums
// are CRC-32C.
//
//	header:   8 bytes magic, 4 bytes version, 4 bytes checksum of these 12
//	section:  4 bytes kind, 4 bytes stored length, 4 bytes raw length,
//	          4 bytes checksum of the stored bytes, 4 bytes checksum of these 16;
//	          then the stored bytes: the section's protobuf message, compressed with zstd
//
// There are the sections figures, program and symbols, then one for each thread, then an empty end
// section, and nothing behind it.
//
// A thread whose grammar did not fit into memory is in segments. They stand before the first
// thread, and are not compressed: their raw length is 0, and what is stored is the length of a
// message, a varint, the message, and a grammar as package coding writes it. Figures, program and
// symbols come again before and between segments, and once more behind the last: what stood before
// a segment suffices to understand it and those before it, so that a file that is cut off is good
// for its whole segments. The last figures and the last program count; symbols are added to those
// before.
//
// From version 6 on there may be sections of other kinds, which belong to other packages: behind
// the first symbols, and before the end. A reader that does not know a kind refuses the file if the
// kind's highest bit is set (wpp.Critical), and else skips the section. Their messages are
// compressed as the format's own, and are not compressed where the raw length is 0. Numbers below
// wpp.FirstSection are the format's own.
//
// Version 2 differs from version 1 in how a thread's grammar is coded, version 3 from version 2 in
// having segments, and in that there may be several sections of symbols; version 4 from version 3
// in that a coded grammar says how many contexts are mixed, version 5 from version 4 in that these
// may be none, but a single one, version 6 from version 5 in having sections of other kinds, and in
// saying the machine that the program is for; all are read, version 6 is written.
const (
	magic   = "\x89WPP\r\n\x1a\n" // not text, and damaged by whoever converts line ends
	version = 6

	withSegments = 3 // the first version that has them
	withOthers   = 6 // the first version that has sections of other kinds

	headerSize        = 16
	sectionHeaderSize = 20
)

// The limits hold for writers as for readers: no length is believed beyond them.
const (
	// bytes of all messages of a file, before compression, and symbolBytes for each symbol of a
	// coded grammar
	maxRaw    = 1 << 30
	maxWindow = 8 << 20 // bytes of history that decompressing needs

	symbolBytes = 16 // a few bytes may hold many symbols, and a symbol takes some memory

	// of all grammars of a file that are in no segment: reading one takes some 150 bytes; a rule in
	// a file has two symbols at least
	maxRules = 1 << 24
	maxRows  = 2 << 30 // bytes of all rows that are made of the columns of a file
	// bytes of the message of a section that has columns, whose elements take up to eight times as
	// much
	maxTable = 256 << 20
)

type sectionKind uint32

const (
	figuresSection sectionKind = iota + 1
	programSection
	symbolSection
	threadSection
	endSection
	segmentSection
)

var sectionNames = map[sectionKind]string{
	figuresSection: "figures",
	programSection: "program",
	symbolSection:  "symbols",
	threadSection:  "thread",
	endSection:     "end",
	segmentSection: "segment",
}

func (k sectionKind) String() string {
	if name, ok := sectionNames[k]; ok {
		return name
	}
	return fmt.Sprintf("of kind %d", wpp.SectionKind(k).Number())
}

// hasColumns reports whether a section's message is tables.
func (k sectionKind) hasColumns() bool { return k == programSection || k == symbolSection }

// isOwn reports whether a section is one that this version of the format knows.
func (k sectionKind) isOwn() bool { _, own := sectionNames[k]; return own }

// isReplaced reports whether a section takes the place of the one of its kind before.
func (k sectionKind) isReplaced() bool { return k == figuresSection || k == programSection }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// A frameWriter writes the frame of a snapshot.
type frameWriter struct {
	w    io.Writer
	zstd *zstd.Encoder
	left int   // raw bytes that may still be written
	at   int64 // bytes written
	// raw bytes of the last figures and the last program, which the next ones replace
	last map[sectionKind]int
	rows rows
}

func newFrameWriter(w io.Writer) (*frameWriter, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(maxWindow),
		zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, fmt.Errorf("compress snapshot: %w", err)
	}
	header := binary.LittleEndian.AppendUint32([]byte(magic), version)
	header = binary.LittleEndian.AppendUint32(header, checksum(header))
	if _, err := w.Write(header); err != nil {
		return nil, err
	}
	return &frameWriter{w: w, zstd: encoder, left: maxRaw, at: headerSize,
		last: map[sectionKind]int{}}, nil
}

// section writes a message as a section; a nil message is written as no bytes at all.
func (w *frameWriter) section(kind sectionKind, message proto.Message) error {
	var raw, stored []byte
	if message != nil {
		var err error
		if raw, err = proto.Marshal(message); err != nil {
			return fmt.Errorf("encode section %v: %w", kind, err)
		}
		stored = w.zstd.EncodeAll(raw, nil)
	}
	if kind.hasColumns() && len(raw) > maxTable {
		return fmt.Errorf("section %v is larger than %d MiB before compression", kind, maxTable>>20)
	}
	if kind.isReplaced() {
		w.left += w.last[kind]
		w.last[kind] = len(raw)
	}
	if err := w.spend(len(raw)); err != nil {
		return fmt.Errorf("section %v: %w", kind, err)
	}
	return w.write(sectionHeader{kind, uint32(len(stored)), uint32(len(raw)), checksum(stored)},
		stored)
}

// segment writes a segment's message and its coded grammar, and returns what a reader needs to find
// them: where they are stored, and the header.
func (w *frameWriter) segment(about *SegmentSection,
	coded []byte) (at int64, h sectionHeader, err error) {
	message, err := proto.Marshal(about)
	if err != nil {
		return 0, h, fmt.Errorf("encode section %v: %w", segmentSection, err)
	}
	front := append(binary.AppendUvarint(nil, uint64(len(message))), message...)
	if len(message) > mostAbout || about.Symbols > mostSegment ||
		uint64(len(front))+uint64(len(coded)) > math.MaxUint32 {
		return 0, h, fmt.Errorf("section %v: it is too large", segmentSection)
	}
	h = sectionHeader{segmentSection, uint32(len(front) + len(coded)), 0,
		crc32.Update(checksum(front), castagnoli, coded)}
	err = w.write(h, front, coded)
	return w.at - int64(h.stored), h, err
}

// write writes a section's header and what is stored of it.
func (w *frameWriter) write(h sectionHeader, stored ...[]byte) error {
	header := binary.LittleEndian.AppendUint32(nil, uint32(h.kind))
	header = binary.LittleEndian.AppendUint32(header, h.stored)
	header = binary.LittleEndian.AppendUint32(header, h.raw)
	header = binary.LittleEndian.AppendUint32(header, h.storedChecked)
	header = binary.LittleEndian.AppendUint32(header, checksum(header))
	for _, b := range append([][]byte{header}, stored...) {
		n, err := w.w.Write(b)
		w.at += int64(n)
		if err != nil {
			return err
		}
	}
	return nil
}

// spend counts what a reader will need against the limit of a file.
func (w *frameWriter) spend(n int) error {
	if n > w.left {
		return fmt.Errorf("snapshot is larger than %d MiB before compression", maxRaw>>20)
	}
	w.left -= n
	return nil
}

// A frameReader reads the frame of a snapshot, trusting nothing: it allocates no more than it has
// read, and decompresses no more than a section declares and the file may still have.
type frameReader struct {
	r    io.Reader
	left int // raw bytes that may still be read
	// raw bytes of the last figures and the last program, which the next ones replace
	last    map[sectionKind]int
	rules   int // that may still be read
	rows    rows
	version uint32
}

// ErrTruncated says that a file ends before its end section.
var ErrTruncated = errors.New("is truncated")

// A versionError is the version of a file that this reader does not know.
type versionError uint32

func (e versionError) Error() string {
	return fmt.Sprintf("has version %d; this wpptrace reads versions 1 to %d: use a newer wpptrace",
		uint32(e), version)
}

// ErrNoSnapshot says that a file is something else.
var ErrNoSnapshot = errors.New("is no wpptrace snapshot")

func newFrameReader(r io.Reader, maxRaw int) (*frameReader, error) {
	r = restOf(r)
	header := make([]byte, headerSize)
	n, err := io.ReadFull(r, header)
	switch {
	case err != nil && !isEOF(err):
		return nil, err
	case n == 0 || !bytes.HasPrefix(header[:n], []byte(magic)[:min(n, len(magic))]):
		return nil, ErrNoSnapshot
	case n < headerSize:
		return nil, fmt.Errorf("%w in its header", ErrTruncated)
	case checksum(header[:12]) != binary.LittleEndian.Uint32(header[12:]):
		return nil, damaged("header: checksum does not match")
	}
	v := binary.LittleEndian.Uint32(header[8:])
	if v < 1 || v > version {
		return nil, versionError(v)
	}
	return &frameReader{r: r, left: maxRaw, last: map[sectionKind]int{}, rules: maxRules,
		version: v}, nil
}

// damaged returns the error of a file that is whole but not as it was written.
func damaged(format string, args ...any) error {
	return fmt.Errorf("is damaged: "+format, args...)
}

// A garbledError says that there are other bytes than were written, or none.
type garbledError struct{ error }

func isEOF(err error) bool { return err == io.EOF || err == io.ErrUnexpectedEOF }

// A sectionHeader precedes a section.
type sectionHeader struct {
	kind          sectionKind
	stored, raw   uint32
	storedChecked uint32
}

// next reads the header of the next section; name says which one is expected.
func (r *frameReader) next(name string) (sectionHeader, error) {
	b := make([]byte, sectionHeaderSize)
	if _, err := io.ReadFull(r.r, b); isEOF(err) {
		return sectionHeader{}, fmt.Errorf("%w before section %s", ErrTruncated, name)
	} else if err != nil {
		return sectionHeader{}, err
	}
	h, ok := parseSectionHeader(b)
	if !ok {
		return sectionHeader{}, garbledError{damaged("header of section %s: checksum does not "+
			"match", name)}
	}
	if h.kind.hasColumns() && h.raw > maxTable {
		return sectionHeader{}, damaged("section %s declares %d bytes, more than %d", name, h.raw,
			maxTable)
	}
	if h.kind.isReplaced() {
		r.left += r.last[h.kind]
		r.last[h.kind] = int(h.raw)
	}
	if !h.kind.isOwn() { // it is not decompressed here
		if h.raw > maxRaw {
			return sectionHeader{}, damaged("section %v declares %d bytes, more than %d", h.kind,
				h.raw, maxRaw)
		}
		return h, nil
	}
	if int64(h.raw) > int64(r.left) {
		return sectionHeader{}, damaged("section %s declares %d bytes, more than the %d that may "+
			"be left", name, h.raw, r.left)
	}
	r.left -= int(h.raw)
	return h, nil
}

func parseSectionHeader(b []byte) (h sectionHeader, ok bool) {
	if checksum(b[:16]) != binary.LittleEndian.Uint32(b[16:]) {
		return sectionHeader{}, false
	}
	return sectionHeader{
		kind:          sectionKind(binary.LittleEndian.Uint32(b)),
		stored:        binary.LittleEndian.Uint32(b[4:]),
		raw:           binary.LittleEndian.Uint32(b[8:]),
		storedChecked: binary.LittleEndian.Uint32(b[12:]),
	}, true
}

// isFinished reads what is left, and reports whether it ends as a file does that is whole. What a
// system that went down has left need not: its end may be zeros.
func (r *frameReader) isFinished() bool {
	last, buf := make([]byte, sectionHeaderSize), make([]byte, 1<<16)
	for {
		n, err := r.r.Read(buf)
		last = append(last, buf[:n]...)
		last = append(last[:0], last[len(last)-sectionHeaderSize:]...)
		if err != nil {
			h, ok := parseSectionHeader(last)
			return ok && h.kind == endSection
		}
	}
}

// spend counts what has been read takes in memory.
func (r *frameReader) spend(n int) error {
	if n > r.left {
		return fmt.Errorf("takes %d bytes, more than the %d that may be left", n, r.left)
	}
	r.left -= n
	return nil
}

// message reads the section behind a header into a message.
func (r *frameReader) message(h sectionHeader, name string, message proto.Message) error {
	stored, err := r.stored(h, name)
	if err != nil {
		return err
	}
	if checksum(stored) != h.storedChecked {
		return garbledError{damaged("section %s: checksum does not match", name)}
	}
	raw, err := decompress(stored, h.raw)
	if err != nil {
		return damaged("section %s: %w", name, err)
	}
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(raw, message); err != nil {
		return damaged("section %s: %w", name, err)
	}
	return nil
}

// stored reads what is stored of the section behind a header. It takes no more memory than there is
// to read.
func (r *frameReader) stored(h sectionHeader, name string) ([]byte, error) {
	var b bytes.Buffer
	if n, err := io.CopyN(&b, r.r, int64(h.stored)); isEOF(err) {
		return nil, cutOff(name, n, h.stored)
	} else if err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func cutOff(name string, n int64, stored uint32) error {
	return fmt.Errorf("%w in section %s: %d of %d bytes", ErrTruncated, name, n, stored)
}

// segment reads the beginning of the segment behind a header, or all where the file can only be
// read once.
func (r *frameReader) segment(h sectionHeader, name string) (*storedSegment, error) {
	file, at, err := r.locate(h, name)
	if err != nil {
		return nil, err
	}
	begin := make([]byte, min(h.stored, 2*mostAbout))
	if _, err := file.ReadAt(begin, at); err != nil {
		return nil, err
	}
	s, err := newStoredSegment(file, at, h, begin)
	if err != nil {
		// its checksum is that of all of it, which is not read yet
		return nil, garbledError{damaged("section %s: %w", name, err)}
	}
	return s, nil
}

// locate says where what is stored of the section behind a header is, and goes on behind it. Where
// the file can only be read once, it is read into memory.
func (r *frameReader) locate(h sectionHeader, name string) (in io.ReaderAt, at int64, err error) {
	section, isFile := r.r.(*io.SectionReader)
	if !isFile {
		stored, err := r.stored(h, name)
		return bytes.NewReader(stored), 0, err
	}
	if at, err = section.Seek(0, io.SeekCurrent); err != nil {
		return nil, 0, err
	}
	if left := section.Size() - at; left < int64(h.stored) {
		return nil, 0, cutOff(name, left, h.stored)
	}
	file, first, _ := section.Outer()
	_, err = section.Seek(int64(h.stored), io.SeekCurrent)
	return file, first + at, err
}

// restOf returns what is left of a file, in which parts are found without a system call; r where
// that can only be read once.
func restOf(r io.Reader) io.Reader {
	file, isFile := r.(interface {
		io.ReaderAt
		io.Seeker
	})
	if !isFile {
		return r
	}
	at, err := file.Seek(0, io.SeekCurrent)
	if err != nil { // a pipe
		return r
	}
	end, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return r
	}
	return io.NewSectionReader(file, at, end-at)
}

func decompress(stored []byte, size uint32) ([]byte, error) {
	decoder, err := newDecoder(stored)
	if err != nil {
		return nil, err
	}
	defer decoders.Put(decoder)
	var raw bytes.Buffer
	raw.Grow(int(min(size, 1<<16)) + bytes.MinRead) // more when it has come
	n, err := raw.ReadFrom(io.LimitReader(decoder, int64(size)+1))
	if err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	if n != int64(size) {
		return nil, fmt.Errorf("decompresses to other than the declared %d bytes", size)
	}
	return raw.Bytes(), nil
}

// decoders are those that are not at work: one takes more memory than most sections.
var decoders sync.Pool

// newDecoder returns one of them that decompresses what is stored.
func newDecoder(stored []byte) (*zstd.Decoder, error) {
	from := bytes.NewReader(stored)
	if d, ok := decoders.Get().(*zstd.Decoder); ok {
		return d, d.Reset(from)
	}
	return zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(maxWindow))
}

// end reads the end section's header and makes sure that nothing follows.
func (r *frameReader) end(h sectionHeader) error {
	if h.stored != 0 || h.raw != 0 {
		return damaged("section end is not empty")
	}
	switch n, err := r.r.Read(make([]byte, 1)); {
	case n > 0:
		return damaged("something follows section end")
	case err != nil && err != io.EOF:
		return err
	}
	return nil
}
