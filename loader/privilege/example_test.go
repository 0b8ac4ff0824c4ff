package privilege_test

import (
	"fmt"

	"kernel.org/pub/linux/libs/security/libcap/cap"

	"wpptrace/loader/privilege"
)

// A process that goes on with nothing but the power to read what others own: it is for good, so
// that this example is not run.
func Example() {
	if err := privilege.Confine([]string{"out.wpp"}, cap.DAC_READ_SEARCH); err != nil {
		fmt.Println(err)
	}
}
