package record

// A background writes snapshots while the recording goes on, one at a time. Requests that come
// while one is being written get one more together.
type background struct {
	begin func() (write func() error) // write runs on another goroutine
	// gets the error of the one that is being written; nil: none is
	written chan error
	again   bool
}

// request asks for a snapshot.
func (b *background) request() {
	if b.written != nil {
		b.again = true
		return
	}
	write, written := b.begin(), make(chan error, 1)
	go func() { written <- write() }()
	b.written = written
}

// poll reports whether a snapshot has been written since the last call, and how that went.
func (b *background) poll() (done bool, err error) {
	select {
	case err = <-b.written:
		b.written = nil
		if b.again {
			b.again = false
			b.request()
		}
		return true, err
	default:
		return false, nil
	}
}

// wait waits for the one that is being written, and says how that went. Another one that was asked
// for is not begun.
func (b *background) wait() (err error) {
	if b.written != nil {
		err = <-b.written
	}
	b.written, b.again = nil, false
	return err
}
