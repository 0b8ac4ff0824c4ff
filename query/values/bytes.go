package values

import (
	"fmt"
	"strconv"
	"strings"
)

// mostBytes is how many bytes are asked for at most.
const mostBytes = 4096

// ParseBytes reads ADDRESS[:SIZE], the address in hex, of 1 byte to 4096.
func ParseBytes(text string) (addr uint64, n int, err error) {
	address, size, ok := strings.Cut(text, ":")
	if n = 1; ok {
		n, err = strconv.Atoi(size)
	}
	if err != nil || n < 1 || n > mostBytes {
		return 0, 0, fmt.Errorf("%q is no number of bytes from 1 to %d", size, mostBytes)
	}
	addr, err = strconv.ParseUint(strings.TrimPrefix(address, "0x"), 16, 64)
	if err != nil {
		return 0, 0, fmt.Errorf("%q is no address in hex", address)
	}
	return addr, n, nil
}
