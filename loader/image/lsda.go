package image

// A callSiteReader reads the call-site tables of language-specific data areas (Itanium C++ ABI,
// exception handling).
type callSiteReader struct {
	image *Image
	total int // call sites read so far
}

// read reads the table of the function in r and says what is wrong with it, or "". Tables that
// overlap are not followed beyond the number of entries that their section has room for.
func (c *callSiteReader) read(lsda uint64, r Range) (calls []CallSite, fault string) {
	const badTable = "cannot read the exception table"
	s := c.image.SectionAt(lsda)
	if s == nil {
		return nil, badTable
	}
	in := cursor{data: s.Data, at: int(lsda - s.Addr), addr: s.Addr}
	padBase := r.Lo
	if e := pointerEncoding(in.byte()); e != omitted {
		padBase = in.pointer(e)
	}
	if types := pointerEncoding(in.byte()); types != omitted {
		in.uleb()
	}
	encoding := pointerEncoding(in.byte())
	table := in.take(in.uleb())
	for table.more() {
		start, length, pad := table.pointer(encoding), table.pointer(encoding),
			table.pointer(encoding)
		site := CallSite{Lo: r.Lo + start, Hi: r.Lo + start + length, Action: table.uleb()}
		if pad != 0 {
			site.Pad = padBase + pad
		}
		if c.total++; site.Lo < r.Lo || site.Hi < site.Lo || site.Hi > r.Hi ||
			c.total > len(s.Data) {
			return nil, badTable
		}
		calls = append(calls, site)
	}
	if table.failed {
		return nil, badTable
	}
	return calls, ""
}
