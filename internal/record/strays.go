package record

import (
	"time"

	"wpptrace/loader/attach"
)

// strayPause is how often a recording looks for strays.
const strayPause = time.Second

// strayThreads are threads that have ended although nothing of what they have reported, as far as
// it has been read, says so.
type strayThreads struct {
	next    time.Time // to look for them
	threads []*thread
	until   attach.Position // of all that they have reported
}

// endStrays ends the threads whose ends were lost, some time after: what is kept of a thread that
// goes on would be so until the recording ends.
func (s *threads) endStrays() (err error) {
	stray := &s.stray
	switch now := time.Now(); {
	case len(stray.threads) > 0 && s.session.HasRead(stray.until):
		err = s.endWithLosses(stray.threads)
		stray.threads = nil
	case len(stray.threads) == 0 && now.After(stray.next):
		stray.next = now.Add(strayPause)
		stray.threads, err = s.strays()
		stray.until = s.session.Reported()
	}
	return err
}

// strays returns the threads that are none of the process any more, but have not been ended.
func (s *threads) strays() (list []*thread, err error) {
	live := map[uint32]bool{}
	ids, err := s.process.Threads()
	if err != nil && s.process.Alive() {
		return nil, err
	}
	for _, id := range ids {
		live[uint32(id)] = true
	}
	for _, t := range s.all {
		if t.decoder == nil || live[t.id] && s.byID[t.id] == t {
			continue
		}
		if !s.lives(t) { // a list that is read while threads end may miss one that does not
			list = append(list, t)
		}
	}
	return list, nil
}

// lives reports whether a thread is one of the process still, as far as is known. Cost: some us.
func (s *threads) lives(t *thread) bool {
	return s.byID[t.id] == t && s.process.HasThread(int(t.id))
}

// endWithLosses ends threads of which all has been read; with what they lost last, if their ends
// were lost.
func (s *threads) endWithLosses(threads []*thread) error {
	for _, t := range threads {
		if t.decoder == nil { // its end came through
			continue
		}
		l, err := s.session.Counters().LossOf(t.id, t.started)
		if err != nil {
			return err
		}
		s.addLoss(l)
		t.end()
	}
	return nil
}
