package requirement

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/cap"

	"wpptrace/loader/privilege"
	"wpptrace/loader/uprobe"
)

// OfMachine lists what tracing requires of the kernel and of this process's privileges.
func OfMachine() []Requirement {
	return []Requirement{
		{"kernel", findKernel, "Linux 6.1 or later on x86-64 is needed"},
		{"privileges", Privileges, PrivilegesFix},
		{"pid namespace", Namespace, NamespaceFix},
		{"bpf", findBPF, "a kernel with CONFIG_BPF_SYSCALL is needed, and no sandbox that " +
			"forbids the bpf system call"},
		{"btf", findBTF, "a kernel with CONFIG_DEBUG_INFO_BTF is needed"},
		{"ring buffer", feature(func() error { return features.HaveMapType(ebpf.RingBuf) }),
			"Linux 5.8 or later is needed"},
		{"task storage", feature(func() error { return features.HaveMapType(ebpf.TaskStorage) }),
			"Linux 5.11 or later is needed"},
		{"uprobes", findUprobes, "a kernel with CONFIG_UPROBES and CONFIG_PERF_EVENTS is needed"},
		{"probes", findMechanism, "a kernel with CONFIG_BPF_EVENTS is needed"},
		{"emulated", findEmulated, ""},
	}
}

// findMechanism says how probes go in.
func findMechanism() (string, error) {
	links := features.HaveBPFLinkUprobeMulti()
	if errors.Is(links, unix.EPERM) || errors.Is(links, unix.EACCES) {
		return feature(func() error { return links })()
	}
	mechanism := uprobe.Detect()
	version, err := features.LinuxVersionCode()
	if err == nil && version >= 6<<16|6<<8 && mechanism == uprobe.Events {
		err = errors.New("no uprobe_multi links, which Linux 6.6 has")
	}
	return mechanism.String(), err
}

// findEmulated says what package x86 takes for emulated, which is what every kernel does.
func findEmulated() (string, error) {
	return "nop, push, direct call and jump, jcc; others take 2 to 40 times as long", nil
}

func findKernel() (string, error) {
	version, err := features.LinuxVersionCode()
	switch {
	case err != nil:
		return "", err
	case version < 6<<16|1<<8:
		return "", fmt.Errorf("%s is too old", KernelRelease())
	}
	return KernelRelease(), nil
}

// PrivilegesFix is what to do where privileges are missing.
const PrivilegesFix = "run wpptrace as root (sudo wpptrace ...); a container must be a " +
	"privileged one"

// Privileges looks for those capabilities that tracing takes, and names those that are missing.
// CAP_SYS_ADMIN does for the first two.
func Privileges() (string, error) {
	var names, missing []string
	for _, c := range []cap.Value{cap.BPF, cap.PERFMON, cap.SYS_PTRACE} {
		name := strings.ToUpper(c.String())
		names = append(names, name)
		if !privilege.Has(c) && (c == cap.SYS_PTRACE || !privilege.Has(cap.SYS_ADMIN)) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return "", fmt.Errorf("no %s", strings.Join(missing, ", "))
	}
	return strings.Join(names, ", "), nil
}

// initialPidNamespace is PROC_PID_INIT_INO of include/linux/proc_ns.h. BPF programs see the process
// numbers of that namespace.
const initialPidNamespace = 4026531836

// NamespaceFix is what to do in another pid namespace.
const NamespaceFix = "run wpptrace outside of the container, or in one with the host's pid " +
	"namespace (docker run --pid=host)"

// Namespace finds out whether process numbers here are the kernel's.
func Namespace() (string, error) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &st); err != nil {
		return "", fmt.Errorf("look at /proc/self/ns/pid: %w", err)
	}
	if st.Ino != initialPidNamespace {
		return "", errors.New("not the initial one: the kernel's process numbers are others than " +
			"those seen here")
	}
	return "the initial one", nil
}

func findBPF() (string, error) {
	return feature(func() error { return features.HaveMapType(ebpf.Array) })()
}

func findBTF() (string, error) {
	const path = "/sys/kernel/btf/vmlinux"
	if _, err := os.Stat(path); err != nil {
		return "", err
	}
	return path, nil
}

func findUprobes() (string, error) {
	const path = "/sys/bus/event_source/devices/uprobe"
	if _, err := os.Stat(path); err != nil && !errors.Is(err, fs.ErrPermission) {
		return "", err
	}
	return path, nil
}

// feature makes a check of a probe for a feature of the kernel.
func feature(have func() error) func() (string, error) {
	return func() (string, error) {
		err := have()
		switch {
		case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
			if _, lacking := Privileges(); lacking != nil {
				return "", ErrUnknown
			}
			return "", fmt.Errorf("forbidden, even to the privileged (%w)", err)
		case errors.Is(err, ebpf.ErrNotSupported):
			return "", errors.New("not in this kernel")
		case err != nil:
			return "", err
		}
		return "there", nil
	}
}

// KernelRelease is the release of the kernel, as uname -r prints it; "" if it is not known.
func KernelRelease() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

// CheckFiles fails when this process may not have as many files open as a recording takes,
// libraries and all, or of some processes: what is refused then has any cause but that.
func CheckFiles() error {
	mechanism := uprobe.Detect()
	least := uint64(127 + mechanism.Files(mechanism.Most()))
	var limit unix.Rlimit // the Go runtime has raised it as far as it may
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Cur >= least {
		return err
	}
	return fmt.Errorf("have %d files open, which a recording takes: %d are allowed: as root, "+
		"ulimit -n %d allows so many", least, limit.Cur, least)
}
