package main

import "errors"

// An overflow is what to do when the ring buffer is full.
type overflow string

const (
	overflowGap  overflow = "gap"  // lose what comes, and mark the place
	overflowStop overflow = "stop" // stop the process until there is room
)

func (o *overflow) String() string { return string(*o) }
func (o *overflow) Type() string   { return "gap|stop" }

func (o *overflow) Set(text string) error {
	switch v := overflow(text); v {
	case overflowGap, overflowStop:
		*o = v
		return nil
	}
	return errors.New("neither gap nor stop")
}
