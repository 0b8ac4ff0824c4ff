package remedy_test

import (
	"errors"
	"fmt"
	"io/fs"

	"wpptrace/internal/remedy"
)

// The caller names what its own user can do.
func Example() {
	err := fmt.Errorf("end: %w",
		remedy.Errorf(remedy.OtherSnapshot, "write snapshot x.wpp: %w", fs.ErrPermission))
	var marked *remedy.Error
	if errors.As(err, &marked) && marked.Kind == remedy.OtherSnapshot {
		fmt.Println(err, "(choose another file)")
	}
	fmt.Println(errors.Is(err, fs.ErrPermission))
	// Output:
	// end: write snapshot x.wpp: permission denied (choose another file)
	// true
}
