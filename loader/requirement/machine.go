package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/features"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/cap"

	"wpptrace/internal/record"
	"wpptrace/loader/attach"
	"wpptrace/loader/cfg"
	"wpptrace/loader/image"
	"wpptrace/loader/privilege"
	"wpptrace/loader/target"
	"wpptrace/loader/uprobe"
	"wpptrace/query/report"
)

func checkCommand() *cobra.Command {
	var pid int
	var asJSON bool
	c := &cobra.Command{
		Use:   "check [--json] [-p PID]",
		Short: "Check the kernel, the privileges and a process: each ok, or missing with the fix",
		Example: `  wpptrace check           can this machine trace at all?
  wpptrace check -p 4711   and process 4711?`,
		Long: "Nothing is attached. What needs privileges to be found out is unknown without them. The exit status\nis 1 unless all is ok.",
		Args: exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			r := checkReport{SchemaVersion: report.SchemaVersion, OK: true, Checks: []checked{}}
			r.run(machineChecks)
			if c.Flags().Changed("pid") {
				r.checkTarget(pid)
			}
			if err := r.write(c.OutOrStdout(), asJSON); err != nil {
				return err
			}
			if !r.OK {
				return exitStatus(exitError)
			}
			return nil
		},
	}
	c.Flags().IntVarP(&pid, "pid", "p", 0, "check process `PID` too")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

// A check finds out about one thing. found is what there is; an error says that it will not do.
type check struct {
	name string
	find func() (found string, err error)
	fix  string
}

// errUnknown is what a check cannot find out.
var errUnknown = errors.New("not known without privileges: run wpptrace as root")

// checked is the outcome of a check.
type checked struct {
	Name    string `json:"name"`              // of the check
	OK      bool   `json:"ok"`                // false too where it is unknown
	Unknown bool   `json:"unknown,omitempty"` // it may be ok
	Found   string `json:"found"`             // what there is, or what is wrong
	Fix     string `json:"fix,omitempty"`     // what to do about it
}

func (c *checked) state() string {
	switch {
	case c.OK:
		return "ok"
	case c.Unknown:
		return "unknown"
	}
	return "missing"
}

// A checkReport is the outcome of all. Its JSON form grows, within a version, by new members only.
type checkReport struct {
	SchemaVersion int       `json:"schema_version"`
	OK            bool      `json:"ok"`     // all are
	Checks        []checked `json:"checks"` // in the order in which they are printed
}

func (r *checkReport) run(checks []check) {
	for _, c := range checks {
		found, err := c.find()
		k := checked{Name: c.name, OK: err == nil, Unknown: errors.Is(err, errUnknown), Found: found}
		if err != nil {
			k.Found, r.OK = err.Error(), false
		}
		if !k.OK && !k.Unknown {
			k.Fix = c.fix
		}
		r.Checks = append(r.Checks, k)
	}
}

func (r *checkReport) write(w io.Writer, asJSON bool) error {
	if asJSON {
		return report.WriteJSON(w, r, "checks")
	}
	for _, c := range r.Checks {
		text := c.Found
		if c.Fix != "" {
			text += ": " + c.Fix
		}
		if _, err := fmt.Fprintf(w, "%-8s %-16s %s\n", c.state(), c.Name, text); err != nil {
			return fmt.Errorf("write checks: %w", err)
		}
	}
	return nil
}

// machineChecks are those of the kernel and of our privileges.
var machineChecks = []check{
	{"kernel", findKernel, "Linux 6.1 or later on x86-64 is needed"},
	{"privileges", findPrivileges, privilegesFix},
	{"pid namespace", findNamespace, namespaceFix},
	{"bpf", findBPF, "a kernel with CONFIG_BPF_SYSCALL is needed, and no sandbox that forbids the bpf system call"},
	{"btf", findBTF, "a kernel with CONFIG_DEBUG_INFO_BTF is needed"},
	{"ring buffer", feature(func() error { return features.HaveMapType(ebpf.RingBuf) }), "Linux 5.8 or later is needed"},
	{"task storage", feature(func() error { return features.HaveMapType(ebpf.TaskStorage) }), "Linux 5.11 or later is needed"},
	{"uprobes", findUprobes, "a kernel with CONFIG_UPROBES and CONFIG_PERF_EVENTS is needed"},
	{"probes", findWay, "a kernel with CONFIG_BPF_EVENTS is needed"},
	{"emulated", findEmulated, ""},
	{"limits", func() (string, error) { return limitsOf(uprobe.Here()), nil }, ""},
}

// findWay tells how probes go in.
func findWay() (string, error) {
	links := features.HaveBPFLinkUprobeMulti()
	if errors.Is(links, unix.EPERM) || errors.Is(links, unix.EACCES) {
		return feature(func() error { return links })()
	}
	way := uprobe.Here()
	version, err := features.LinuxVersionCode()
	if err == nil && version >= 6<<16|6<<8 && way == uprobe.Events {
		err = errors.New("no uprobe_multi links, which Linux 6.6 has")
	}
	return way.String(), err
}

// findEmulated tells what package x86 takes for emulated, which is what every kernel does.
func findEmulated() (string, error) {
	return "nop, push, direct call and jump, jcc; others take 2 to 40 times as long", nil
}

// limitsOf lists what cannot be had where probes go in that way.
func limitsOf(w uprobe.Way) string {
	var list []string
	for _, limit := range []struct {
		flags string
		err   error
	}{{"--overhead, plan --canary", w.Windows()}, {"--lib", w.Libraries()}, {"--follow-fork", w.Families()}} {
		if limit.err != nil {
			list = append(list, fmt.Sprintf("no %s (%v)", limit.flags, limit.err))
		}
	}
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, "; ")
}

func findKernel() (string, error) {
	version, err := features.LinuxVersionCode()
	switch {
	case err != nil:
		return "", err
	case version < 6<<16|1<<8:
		return "", fmt.Errorf("%s is too old", record.KernelRelease())
	}
	return record.KernelRelease(), nil
}

const privilegesFix = "run wpptrace as root (sudo wpptrace ...); a container must be a privileged one"

// findPrivileges looks for those capabilities that tracing takes. CAP_SYS_ADMIN does for the first
// two.
func findPrivileges() (string, error) {
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

const namespaceFix = "run wpptrace outside of the container, or in one with the host's pid namespace (docker run --pid=host)"

func findNamespace() (string, error) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &st); err != nil {
		return "", fmt.Errorf("look at /proc/self/ns/pid: %w", err)
	}
	if st.Ino != initialPidNamespace {
		return "", errors.New("not the initial one: the kernel's process numbers are others than those seen here")
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
			if _, lacking := findPrivileges(); lacking != nil {
				return "", errUnknown
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

// checkTarget checks a process, as far as one thing does not hide the next.
func (r *checkReport) checkTarget(pid int) {
	p, err := target.Open(pid)
	r.run([]check{{"process", func() (string, error) {
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%d (%s)", p.PID, p.Name), nil
	}, ""}})
	if err != nil {
		return
	}
	defer p.Close()
	var im *image.Image
	r.run([]check{
		{"executable", func() (found string, err error) {
			im, err = openImage(p)
			return "x86-64, readable", err
		}, ""},
		{"shadow stack", func() (string, error) { return findShadowStack(p) }, "start it with GLIBC_TUNABLES=glibc.cpu.x86_shstk=off"},
	})
	if im != nil {
		r.run([]check{
			{"code", func() (string, error) { return "is the file's", attach.CheckText(p, im) }, ""},
			{"unwind data", func() (string, error) { return findUnwind(im) }, ""},
		})
	}
}

func openImage(p *target.Process) (*image.Image, error) {
	exe, err := p.Executable()
	if err != nil {
		return nil, err
	}
	defer exe.Close()
	st, err := exe.Stat()
	if err != nil {
		return nil, fmt.Errorf("look at %s: %w", p.Name, err)
	}
	return image.Open(exe, st.Size(), p.File)
}

// findUnwind tells how much of the code the unwind information covers.
func findUnwind(im *image.Image) (string, error) {
	bytes := uint64(0)
	for _, r := range im.Ranges {
		bytes += r.Hi - r.Lo
	}
	if bytes == 0 {
		return "", cfg.NoUnwind(im)
	}
	return fmt.Sprintf("of %d bytes of code", bytes), nil
}

func findShadowStack(p *target.Process) (string, error) {
	on, err := p.ShadowStack()
	if err == nil && on {
		err = errors.New("on: kernels kill a probed process")
	}
	return "off", err
}
