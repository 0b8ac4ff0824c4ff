package values

// SetSegment has segments have so many instructions.
func (r *Recorder) SetSegment(n uint64) { r.segment = n }
