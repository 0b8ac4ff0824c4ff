package memory

import (
	"fmt"
	"strconv"
	"strings"
)

// A Size is a number of bytes, written as 4096, 4K or 64M. It is the value of a flag.
type Size int64

var units = []struct {
	letter string
	bytes  Size
}{{"G", 1 << 30}, {"M", 1 << 20}, {"K", 1 << 10}}

// Set reads a size, as a flag has it.
func (s *Size) Set(text string) error {
	digits, unit := text, Size(1)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(strings.ToUpper(text), u.letter); ok {
			digits, unit = rest, u.bytes
		}
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	if err == nil && n < 0 {
		err = strconv.ErrRange
	}
	if err != nil {
		return err
	}
	*s = Size(n) * unit
	return nil
}

// Type is what help calls it.
func (s *Size) Type() string { return "bytes" }

// String writes a size so that Set reads it back.
func (s Size) String() string {
	for _, u := range units {
		if s >= u.bytes && s%u.bytes == 0 {
			return fmt.Sprintf("%d%s", int64(s/u.bytes), u.letter)
		}
	}
	return strconv.FormatInt(int64(s), 10)
}
