package image

import "strings"

// Copies returns where code begins that is inlined from routines whose names, demangled, are asked
// for: an address for each part of it that lies together, in no order. It reads the debug
// information of all units that has not been read yet, about 0.3 s for 10 MB; where that fails, the
// copies of a unit are missing: see Trouble.
func (l *Lines) Copies(isNamed func(routine string) bool) []uint64 {
	return l.inlined.copies(isNamed)
}

func (c *inlinedCalls) copies(isNamed func(routine string) bool) (list []uint64) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	known := map[string]bool{}
	for i := range c.units {
		u := &c.units[i]
		c.know(u)
		for _, part := range u.code {
			for call := int(part.owner); call != nowhere; call = c.calls[call].in {
				name := c.name(c.calls[call].callee)
				is, ok := known[name]
				if !ok {
					is = name != "" && isNamed(name)
					known[name] = is
				}
				if is {
					list = append(list, part.addr)
					break
				}
			}
		}
	}
	return list
}

// DebugBytes is the size of the debug information that Lines and Copies read, as it is in its file;
// 0: there is none.
func (im *Image) DebugBytes() (n uint64) {
	err := im.withDebug(func(f elfFile) error {
		for _, s := range f.parsed.Sections {
			if strings.HasPrefix(s.Name, ".debug_") || strings.HasPrefix(s.Name, ".zdebug_") {
				n += s.FileSize
			}
		}
		return nil
	})
	if err != nil {
		return 0
	}
	return n
}
