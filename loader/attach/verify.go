package attach

import (
	"fmt"

	"wpptrace/loader/image"
	"wpptrace/loader/plan"
	"wpptrace/loader/target"
)

// Base is where the image is mapped: what to add to a link-time address.
func Base(p *target.Process, im *image.Image) (uint64, error) {
	mappings, err := p.ExecutableMappings()
	if err != nil {
		return 0, err
	}
	const page = 4096
	for _, m := range mappings {
		for _, s := range im.Segments {
			if m.Offset == s.Offset&^(page-1) {
				return m.Lo - s.Addr&^(page-1), nil
			}
		}
	}
	return 0, fmt.Errorf("find %s in the memory of process %d: it is not mapped", im.Name, p.PID)
}

// breakpoint is what a probe puts into the text.
const breakpoint = 0xcc

// verify reads every probed byte back: some failures to put a probe in are silent.
func verify(p *target.Process, pl *plan.Plan, base uint64) error {
	mem, err := p.Memory()
	if err != nil {
		return err
	}
	defer mem.Close()
	const chunk = 4096
	buf := make([]byte, chunk)
	for i := 0; i < len(pl.Sites); {
		lo := pl.Sites[i].Addr
		n := 1
		for i+n < len(pl.Sites) && pl.Sites[i+n].Addr-lo < chunk {
			n++
		}
		part := buf[:pl.Sites[i+n-1].Addr-lo+1]
		if _, err := mem.ReadAt(part, int64(base+lo)); err != nil {
			if !p.Alive() {
				return target.ErrGone
			}
			return fmt.Errorf("read its text back at %x: %w", base+lo, err)
		}
		for _, s := range pl.Sites[i : i+n] {
			if part[s.Addr-lo] != breakpoint {
				return fmt.Errorf("the probe at %x in %s does not stand: its text was changed, or is not the file's", s.Addr, pl.Routines[s.Routine].Name)
			}
		}
		i += n
	}
	return nil
}
