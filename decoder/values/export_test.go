package values

// SetSegment has segments have so many instructions.
func (r *Recorder) SetSegment(n uint64) { r.segment = n }

// Hold has segments that end not be encoded until release is called.
func (r *Recorder) Hold() (release func()) {
	r.coding <- struct{}{}
	return func() { <-r.coding }
}
