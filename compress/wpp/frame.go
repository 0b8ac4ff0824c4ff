package wpp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/zstd"
	"google.golang.org/protobuf/proto"
)

// A .wpp file is a header and a sequence of sections. All numbers are little-endian; all checksums are CRC-32C.
//
//	header:   8 bytes magic, 4 bytes version, 4 bytes checksum of these 12
//	section:  4 bytes kind, 4 bytes stored length, 4 bytes raw length, 4 bytes checksum of the stored bytes,
//	          4 bytes checksum of these 16; then the stored bytes: the section's protobuf message, compressed with zstd
//
// There are the sections figures, program and symbols, then one for each thread, then an empty end section, and nothing behind it.
// Version 2 differs from version 1 in how a thread's grammar is coded; both are read, version 2 is written.
const (
	magic   = "\x89WPP\r\n\x1a\n" // not text, and damaged by whoever converts line ends
	version = 2

	headerSize        = 16
	sectionHeaderSize = 20
)

// The limits hold for writers as for readers: no length is believed beyond them.
const (
	maxRaw    = 1 << 30 // bytes of all messages of a file, before compression, and symbolBytes for each symbol of a coded grammar
	maxWindow = 8 << 20 // bytes of history that decompressing needs

	symbolBytes = 16 // a few bytes may hold many symbols, and a symbol takes some memory
)

type sectionKind uint32

const (
	figuresSection sectionKind = iota + 1
	programSection
	symbolSection
	threadSection
	endSection
)

var sectionNames = map[sectionKind]string{
	figuresSection: "figures",
	programSection: "program",
	symbolSection:  "symbols",
	threadSection:  "thread",
	endSection:     "end",
}

func (k sectionKind) String() string {
	if name, ok := sectionNames[k]; ok {
		return name
	}
	return fmt.Sprintf("of unknown kind %d", uint32(k))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// A frameWriter writes the frame of a snapshot.
type frameWriter struct {
	w    io.Writer
	zstd *zstd.Encoder
	left int // raw bytes that may still be written
}

func newFrameWriter(w io.Writer) (*frameWriter, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(maxWindow),
		zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, fmt.Errorf("compress snapshot: %w", err)
	}
	header := binary.LittleEndian.AppendUint32([]byte(magic), version)
	header = binary.LittleEndian.AppendUint32(header, checksum(header))
	if _, err := w.Write(header); err != nil {
		return nil, err
	}
	return &frameWriter{w, encoder, maxRaw}, nil
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
	if err := w.spend(len(raw)); err != nil {
		return fmt.Errorf("section %v: %w", kind, err)
	}
	header := binary.LittleEndian.AppendUint32(nil, uint32(kind))
	header = binary.LittleEndian.AppendUint32(header, uint32(len(stored)))
	header = binary.LittleEndian.AppendUint32(header, uint32(len(raw)))
	header = binary.LittleEndian.AppendUint32(header, checksum(stored))
	header = binary.LittleEndian.AppendUint32(header, checksum(header))
	if _, err := w.w.Write(header); err != nil {
		return err
	}
	_, err := w.w.Write(stored)
	return err
}

// spend counts what a reader will need against the limit of a file.
func (w *frameWriter) spend(n int) error {
	if n > w.left {
		return fmt.Errorf("snapshot is larger than %d MiB before compression", maxRaw>>20)
	}
	w.left -= n
	return nil
}

// A frameReader reads the frame of a snapshot, trusting nothing: it allocates no more than it has read, and decompresses no more than
// a section declares and the file may still have.
type frameReader struct {
	r    io.Reader
	left int // raw bytes that may still be read
}

// errTruncated says that the file ends before its end section.
var errTruncated = errors.New("is truncated")

// A versionError is the version of a file that this reader does not know.
type versionError uint32

func (e versionError) Error() string {
	return fmt.Sprintf("has version %d; this wpptrace reads versions 1 to %d: use a newer wpptrace", uint32(e), version)
}

var errNoSnapshot = errors.New("is no wpptrace snapshot")

func newFrameReader(r io.Reader, maxRaw int) (*frameReader, error) {
	header := make([]byte, headerSize)
	n, err := io.ReadFull(r, header)
	switch {
	case err != nil && !isEOF(err):
		return nil, err
	case n == 0 || !bytes.HasPrefix(header[:n], []byte(magic)[:min(n, len(magic))]):
		return nil, errNoSnapshot
	case n < headerSize:
		return nil, fmt.Errorf("%w in its header", errTruncated)
	case checksum(header[:12]) != binary.LittleEndian.Uint32(header[12:]):
		return nil, damaged("header: checksum does not match")
	}
	if v := binary.LittleEndian.Uint32(header[8:]); v < 1 || v > version {
		return nil, versionError(v)
	}
	return &frameReader{r, maxRaw}, nil
}

// damaged returns the error of a file that is whole but not as it was written.
func damaged(format string, args ...any) error {
	return fmt.Errorf("is damaged: "+format, args...)
}

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
		return sectionHeader{}, fmt.Errorf("%w before section %s", errTruncated, name)
	} else if err != nil {
		return sectionHeader{}, err
	}
	if checksum(b[:16]) != binary.LittleEndian.Uint32(b[16:]) {
		return sectionHeader{}, damaged("header of section %s: checksum does not match", name)
	}
	h := sectionHeader{
		kind:          sectionKind(binary.LittleEndian.Uint32(b)),
		stored:        binary.LittleEndian.Uint32(b[4:]),
		raw:           binary.LittleEndian.Uint32(b[8:]),
		storedChecked: binary.LittleEndian.Uint32(b[12:]),
	}
	if int64(h.raw) > int64(r.left) {
		return sectionHeader{}, damaged("section %s declares %d bytes, more than the %d that may be left", name, h.raw, r.left)
	}
	r.left -= int(h.raw)
	return h, nil
}

// message reads the section behind a header into a message.
func (r *frameReader) message(h sectionHeader, name string, message proto.Message) error {
	var stored bytes.Buffer
	if n, err := io.CopyN(&stored, r.r, int64(h.stored)); isEOF(err) {
		return fmt.Errorf("%w in section %s: %d of %d bytes", errTruncated, name, n, h.stored)
	} else if err != nil {
		return err
	}
	if checksum(stored.Bytes()) != h.storedChecked {
		return damaged("section %s: checksum does not match", name)
	}
	raw, err := decompress(stored.Bytes(), h.raw)
	if err != nil {
		return damaged("section %s: %w", name, err)
	}
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(raw, message); err != nil {
		return damaged("section %s: %w", name, err)
	}
	return nil
}

func decompress(stored []byte, size uint32) ([]byte, error) {
	decoder, err := zstd.NewReader(bytes.NewReader(stored), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, err
	}
	defer decoder.Close()
	var raw bytes.Buffer
	n, err := io.Copy(&raw, io.LimitReader(decoder, int64(size)+1))
	if err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	if n != int64(size) {
		return nil, fmt.Errorf("decompresses to other than the declared %d bytes", size)
	}
	return raw.Bytes(), nil
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
