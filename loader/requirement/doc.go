// Package requirement knows what tracing requires of a machine and of a process, how to find out
// whether it is there, and what to do where it is not. Nothing is attached.
package requirement

import "errors"

// A Requirement is one thing that tracing requires. Find says what there is; its error says that it
// will not do, and Fix what to do about that.
type Requirement struct {
	Name string
	Find func() (found string, err error)
	Fix  string
}

// ErrUnknown is what cannot be found out.
var ErrUnknown = errors.New("not known without privileges: run wpptrace as root")
