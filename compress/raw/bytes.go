package raw

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// A bytesIn is a source of bytes and of the operands that are made of them. It counts, and
// remembers the source's error.
type bytesIn struct {
	r   *bufio.Reader
	at  int64 // bytes read
	err error // of the source, its end among them
}

func (in *bytesIn) byte() (byte, error) {
	b, err := in.r.ReadByte()
	if err != nil {
		in.err = err
		return 0, err
	}
	in.at++
	return b, nil
}

var errVarint = errors.New("an operand is above 64 bits")

// uvarint reads an unsigned LEB128 number.
func (in *bytesIn) uvarint() (n uint64, err error) {
	for shift := uint(0); ; shift += 7 {
		b, err := in.byte()
		if err != nil {
			return 0, err
		}
		if shift == 63 && b > 1 {
			return 0, errVarint
		}
		n |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return n, nil
		}
	}
}

// number reads the number of something.
func (in *bytesIn) number(of string) (uint64, error) {
	n, err := in.uvarint()
	if err == nil && n > mostNumber {
		err = fmt.Errorf("%s number %d is above %d", of, n, mostNumber)
	}
	return n, err
}

func (in *bytesIn) name() (string, error) {
	n, err := in.uvarint()
	if err != nil {
		return "", err
	}
	if n > mostName {
		return "", fmt.Errorf("a name of %d bytes, where %d is the most", n, mostName)
	}
	b := make([]byte, n)
	k, err := io.ReadFull(in.r, b)
	in.at += int64(k)
	if err == io.ErrUnexpectedEOF {
		err = io.EOF
	}
	in.err = err
	return string(b), err
}
