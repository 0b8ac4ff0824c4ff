package main

import (
	"time"

	"wpptrace/loader/attach"
)

// strayPause is how often a recording looks for strays.
const strayPause = time.Second

// Straying are threads that have ended although nothing of what they have reported, as far as it has
// been read, says so.
type straying struct {
	next    time.Time // to look for them
	threads []*thread
	until   attach.Position // of all that they have reported
}

// endStrays ends the threads whose ends were lost, some time after: what is kept of a thread that
// goes on would be so until the recording ends.
func (r *recording) endStrays() (err error) {
	s := &r.straying
	switch now := time.Now(); {
	case len(s.threads) > 0 && r.session.HasRead(s.until):
		err = r.endWithLosses(s.threads)
		s.threads = nil
	case len(s.threads) == 0 && now.After(s.next):
		s.next = now.Add(strayPause)
		s.threads, err = r.strays()
		s.until = r.session.Reported()
	}
	return err
}

// strays returns the threads that are none of the process any more, but have not been ended.
func (r *recording) strays() (list []*thread, err error) {
	live := map[uint32]bool{}
	ids, err := r.process.Threads()
	if err != nil && r.process.Alive() {
		return nil, err
	}
	for _, id := range ids {
		live[uint32(id)] = true
	}
	for _, t := range r.all {
		if t.words == nil || live[t.id] && r.threads[t.id] == t {
			continue
		}
		if !r.lives(t) { // a list that is read while threads end may miss one that does not
			list = append(list, t)
		}
	}
	return list, nil
}

// lives reports whether a thread is one of the process still, as far as is known. Cost: some us.
func (r *recording) lives(t *thread) bool {
	return r.threads[t.id] == t && r.process.HasThread(int(t.id))
}

// endWithLosses ends threads of which all has been read; with what they lost last, if their ends
// were lost.
func (r *recording) endWithLosses(threads []*thread) error {
	for _, t := range threads {
		if t.words == nil { // its end came through
			continue
		}
		l, err := r.session.LossOf(t.id, t.started)
		if err != nil {
			return err
		}
		r.addLoss(l)
		t.end()
	}
	return nil
}
