package streams

// A Cursor is a stream and a place in it. It belongs to one goroutine. A step takes some 10 ns and
// no memory.
type Cursor struct {
	form form
	len  uint64
	at   uint64
}

// Len is the number of values.
func (c *Cursor) Len() uint64 { return c.len }

// Position is the number of values before the cursor.
func (c *Cursor) Position() uint64 { return c.at }

// Next steps over the next value and returns it; false: there is none.
func (c *Cursor) Next() (value uint64, ok bool) {
	if c.at == c.len {
		return 0, false
	}
	c.at++
	return c.form.next(), true
}

// Previous steps back over the value before the cursor and returns it; false: there is none.
func (c *Cursor) Previous() (value uint64, ok bool) {
	if c.at == 0 {
		return 0, false
	}
	c.at--
	return c.form.previous(), true
}

// Seek puts the cursor behind so many values, or at the end of fewer. It takes as many steps as lie
// between.
func (c *Cursor) Seek(position uint64) {
	for c.at < min(position, c.len) {
		c.Next()
	}
	for c.at > position {
		c.Previous()
	}
}
