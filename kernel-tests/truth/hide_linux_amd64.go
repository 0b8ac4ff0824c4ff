package truth

import (
	"bytes"
	"fmt"
	"os"
	"slices"
)

// A curtain covers the code of the images with int3 while the only thread is in another library, so
// that that runs at full speed and the first instruction of an image that is reached, from
// whichever side, stops the thread.
type curtain struct {
	atlas *atlas
	mem   *os.File // /proc/PID/mem of the traced process
	drawn []*image // those that it covers
	// patience is how many steps outside of the images cost about as much as drawing the curtain
	// and opening it again.
	patience int
}

func newCurtain(a *atlas, pid int) (*curtain, error) {
	mem, err := openMemory(pid)
	if err != nil {
		return nil, err
	}
	c := &curtain{atlas: a, mem: mem}
	c.measure()
	return c, nil
}

func (c *curtain) measure() {
	pages := 0
	for _, img := range c.atlas.all() {
		for _, s := range img.sections {
			pages += len(s.code)>>12 + 1
		}
	}
	c.patience = 4 + pages/8
}

func openMemory(pid int) (*os.File, error) {
	mem, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("open memory of traced process: %w", err)
	}
	return mem, nil
}

// possible says whether the images distinguish code from data, without which nothing may be
// covered.
func (c *curtain) possible() bool {
	return !slices.ContainsFunc(c.atlas.all(),
		func(img *image) bool { return len(img.sections) == 0 })
}

// draw covers what is mapped now.
func (c *curtain) draw() error {
	if err := c.atlas.look(0); err != nil {
		return err
	}
	c.measure()
	c.drawn = c.atlas.all()
	for _, img := range c.drawn {
		for _, s := range img.sections {
			if _, err := c.mem.WriteAt(bytes.Repeat([]byte{0xcc}, len(s.code)),
				int64(s.lo+img.bias)); err != nil {
				return fmt.Errorf("cover text: %w", err)
			}
		}
	}
	return nil
}

// open puts the code back; it does nothing when the curtain is not drawn. What has been unmapped
// meanwhile is gone.
func (c *curtain) open() error {
	if len(c.drawn) == 0 {
		return nil
	}
	if err := c.atlas.look(0); err != nil {
		return err
	}
	drawn := slices.DeleteFunc(c.drawn,
		func(img *image) bool { return !slices.Contains(c.atlas.all(), img) })
	c.drawn = nil
	return uncover(c.mem, drawn)
}

func uncover(mem *os.File, images []*image) error {
	for _, img := range images {
		for _, s := range img.sections {
			if _, err := mem.WriteAt(s.code, int64(s.lo+img.bias)); err != nil {
				return fmt.Errorf("uncover text: %w", err)
			}
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
	return uncover(mem, c.atlas.all())
}
