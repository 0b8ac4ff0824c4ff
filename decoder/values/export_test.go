package values

// Hold has segments that end not be encoded until release is called.
func (r *Recorder) Hold() (release func()) {
	r.coding <- struct{}{}
	return func() { <-r.coding }
}
