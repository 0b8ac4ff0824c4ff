package truth

import (
	"bytes"
	"fmt"
	"os"
)

// A curtain covers the image's code with int3 while its only thread is in a library, so that the library runs at full speed
// and the first instruction of the image that is reached, from whichever side, stops the thread.
type curtain struct {
	img   *image
	mem   *os.File // /proc/PID/mem of the traced process
	cover []byte
	drawn bool
	// patience is how many steps outside of the image cost about as much as drawing the curtain and opening it again.
	patience int
}

func newCurtain(img *image, pid int) (*curtain, error) {
	mem, err := openMemory(pid)
	if err != nil {
		return nil, err
	}
	longest, pages := 0, 0
	for _, s := range img.sections {
		longest = max(longest, len(s.code))
		pages += len(s.code)>>12 + 1
	}
	return &curtain{img: img, mem: mem, cover: bytes.Repeat([]byte{0xcc}, longest), patience: 4 + pages/8}, nil
}

func openMemory(pid int) (*os.File, error) {
	mem, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("open memory of traced process: %w", err)
	}
	return mem, nil
}

// possible says whether the image tells code from data, without which nothing may be covered.
func (c *curtain) possible() bool { return len(c.img.sections) > 0 }

func (c *curtain) draw() error {
	for _, s := range c.img.sections {
		if _, err := c.mem.WriteAt(c.cover[:len(s.code)], int64(s.lo+c.img.bias)); err != nil {
			return fmt.Errorf("cover text: %w", err)
		}
	}
	c.drawn = true
	return nil
}

// open puts the code back; it does nothing when the curtain is not drawn.
func (c *curtain) open() error {
	if !c.drawn {
		return nil
	}
	c.drawn = false
	return c.uncover(c.mem)
}

func (c *curtain) uncover(mem *os.File) error {
	for _, s := range c.img.sections {
		if _, err := mem.WriteAt(s.code, int64(s.lo+c.img.bias)); err != nil {
			return fmt.Errorf("uncover text: %w", err)
		}
	}
	return nil
}

// uncoverCopy puts the code back in a child that was forked while the curtain was drawn.
func (c *curtain) uncoverCopy(child int) error {
	mem, err := openMemory(child)
	if err != nil {
		return err
	}
	defer mem.Close()
	return c.uncover(mem)
}
