// Init is the first process of a machine that tests run in: it runs the command that it finds there
// and switches the machine off.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"

	"wpptrace/kernel-tests/vm"
)

func main() {
	out, err := start()
	if err == nil {
		err = run(out)
	}
	if err != nil {
		fmt.Println("init:", err)
	}
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}

// start makes of the machine what programs expect, and opens the line on which the command is
// heard.
func start() (out *os.File, err error) {
	for _, m := range [][2]string{{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"},
		{"tracefs", "/sys/kernel/tracing"}, {"bpf", "/sys/fs/bpf"}} {
		if err := unix.Mount(m[0], m[1], m[0], 0, ""); err != nil {
			return nil, fmt.Errorf("mount %s: %w", m[1], err)
		}
	}
	return os.OpenFile("/dev/ttyS1", os.O_WRONLY, 0)
}

func run(out *os.File) error {
	text, err := os.ReadFile(vm.OrderFile)
	if err != nil {
		return err
	}
	var o vm.Order
	if err := json.Unmarshal(text, &o); err != nil {
		return fmt.Errorf("read %s: %w", vm.OrderFile, err)
	}
	cmd := exec.Command(o.Command[0], o.Command[1:]...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = o.Env, "/tmp", out, out
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		return err
	}
	if _, err := io.WriteString(out,
		fmt.Sprintf("\n%s%d\n", vm.Ended, cmd.ProcessState.ExitCode())); err != nil {
		return err
	}
	const drain = 1 // what TCSBRK is to do when all is sent: nothing
	return unix.IoctlSetInt(int(out.Fd()), unix.TCSBRK, drain)
}
