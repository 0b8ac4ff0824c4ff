package requirement

import (
	"errors"
	"fmt"

	"wpptrace/loader/attach"
	"wpptrace/loader/cfg"
	"wpptrace/loader/image"
	"wpptrace/loader/target"
)

// OfProcess hands out what tracing requires of a process, as far as one thing does not hide the next.
// Each is to be found out at once.
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
		each(Requirement{"code", func() (string, error) { return "is the file's", attach.CheckText(p, im) }, ""})
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

// findUnwind says how much of the code the unwind information covers.
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
