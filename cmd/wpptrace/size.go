package main

import (
	"fmt"
	"strconv"
	"strings"
)

// A size is a number of bytes, written as 4096, 4K or 64M.
type size int64

var units = []struct {
	letter string
	bytes  size
}{{"G", 1 << 30}, {"M", 1 << 20}, {"K", 1 << 10}}

// Set reads a size.
func (s *size) Set(text string) error {
	digits, unit := text, size(1)
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
	*s = size(n) * unit
	return nil
}

func (s *size) Type() string { return "bytes" }

func (s size) String() string {
	for _, u := range units {
		if s >= u.bytes && s%u.bytes == 0 {
			return fmt.Sprintf("%d%s", int64(s/u.bytes), u.letter)
		}
	}
	return strconv.FormatInt(int64(s), 10)
}
