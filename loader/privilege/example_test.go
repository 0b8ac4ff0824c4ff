package privilege_test

import (
	"fmt"
	"os"

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

// A program that has capabilities by its file drops them all unless it is to trace, and opens what
// its user names as its user.
func ExampleAsUser() {
	if err := privilege.Suspend(); err != nil {
		fmt.Println(err)
		return
	}
	if err := privilege.Take(cap.BPF, cap.PERFMON, cap.SYS_PTRACE); err != nil {
		fmt.Println(err)
		return
	}
	var f *os.File
	err := privilege.AsUser(func() (err error) {
		f, err = os.Open("/etc/hostname")
		return err
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	f.Close()
}
