package requirement

import (
	"errors"
	"fmt"

	"wpptrace/loader/attach"
	"wpptrace/loader/cfg/recovery"
	"wpptrace/loader/image"
	"wpptrace/loader/target"
)

// OfProcess hands out what tracing requires of a process, as far as one thing does not hide the
// next. Each is to be found out at once.
func OfProcess(pid int, each func(Requirement)) {
	p, err := target.Open(pid)
	each(Requirement{"process", func() (string, error) {
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%d (%s)", p.PID, p.Name), nil
	}, ""})
	if err != nil {
		return
	}
	defer p.Close()
	var im *image.Image
	each(Requirement{"executable", func() (found string, err error) {
		im, err = openImage(p)
		return "x86-64, readable", err
	}, ""})
	each(Requirement{
		"shadow stack", func() (string, error) { return findShadowStack(p) },
		"start it with GLIBC_TUNABLES=glibc.cpu.x86_shstk=off",
	})
	if im != nil {
		each(Requirement{"code", func() (string, error) { return findCode(p, im) }, ""})
		each(Requirement{"unwind data", func() (string, error) { return findUnwind(im) }, ""})
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

// findCode compares the code of a process with its file's, and looks whether probes can go in.
func findCode(p *target.Process, im *image.Image) (string, error) {
	exe, err := p.Executable()
	if err != nil {
		return "", err
	}
	defer exe.Close()
	list, err := attach.Obstacles(p, im, exe)
	if err != nil {
		return "", err
	}
	all, inTheWay := uint64(0), uint64(0)
	for _, r := range im.Ranges {
		all += r.Hi - r.Lo
		if attach.InTheWay(list, [][2]uint64{{r.Lo, r.Hi}}) != "" {
			inTheWay += r.Hi - r.Lo
		}
	}
	switch {
	case len(list) == 0:
		return "is the file's", nil
	case inTheWay == all:
		return "", errors.New(list[0].Why)
	}
	return fmt.Sprintf("is the file's, but for routines of %d bytes of %d, which are left out: %s",
		inTheWay, all, list[0].Why), nil
}

// findUnwind says how much of the code the unwind information covers.
func findUnwind(im *image.Image) (string, error) {
	bytes := uint64(0)
	for _, r := range im.Ranges {
		bytes += r.Hi - r.Lo
	}
	if bytes == 0 {
		return "", recovery.NoUnwind(im)
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
