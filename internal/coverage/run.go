package coverage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"slices"
	"sync"
	"time"

	"kernel.org/pub/linux/libs/security/libcap/cap"

	"wpptrace/compress/wpp/covered"
	"wpptrace/internal/record"
	"wpptrace/internal/record/sample"
	"wpptrace/internal/recordreport"
	"wpptrace/internal/remedy"
	"wpptrace/internal/traced"
	"wpptrace/loader/firsthit"
	"wpptrace/loader/guard"
	"wpptrace/loader/privilege"
	"wpptrace/loader/target"
)

// Options say what is observed. One of Process and Child is needed.
type Options struct {
	// Process is observed from now on. It stays the caller's.
	Process *target.Process
	// Child is a command that stands before its first instruction. It stays the caller's, who waits
	// for its end; it is killed when nothing can be observed.
	Child     *target.Child
	Selection traced.Selection
	Duration  time.Duration // 0: until the process exits
	// Confine gives up all capabilities but those that are needed once the probes stand; nil: none
	// is given up.
	Confine func(files []string, keep ...cap.Value) error
	// Output is where the caller will write: Confine is told.
	Output []string
	Log    *slog.Logger // nil: nothing is logged
	// LibraryLeftOut is called for a library that is not observed, and why; nil: nothing is.
	LibraryLeftOut func(path string, err error)
	// Remark is called with a line that the user should read: of what was not observed, or of what
	// it costs; nil: nothing is.
	Remark func(line string)
	// Began is called when all probes stand; nil: nothing is.
	Began func(pid, probes int)
	// Ending is called when it is over and the probes that stand are about to be taken out of the
	// process, which goes on meanwhile; nil: nothing is.
	Ending func(pid, probes int)
	// EndsEarly is called when the observation ends before it was to, and why; nil: nothing is.
	EndsEarly func(why error)

	residual *residual // nil: all that runs is wanted
	placed   func()    // is called when all probes stand, or will not
}

// An observation is a process with probes in it.
type observation struct {
	options Options
	process *target.Process
	life    *target.Run
	images  []observedImage
	session *firsthit.Session
	watch   *watch
	sampler *sample.Sampler // nil: there is none

	libraries *record.Selector // nil: none is wanted
	sites     int              // of all images
	began     time.Time        // when its probes stood
	looked    time.Time        // for libraries
	forking   forking
	paths     *pathWatch // nil: none is looked at
	edges     *edgeWatch // nil: none is looked at
}

type observedImage struct {
	file   *os.File
	graphs *traced.Graphs
	sites  []site
	first  int // number of the first site
	base   uint64
}

// Run observes a process until the context is done, the time is over, or the process has ended, and
// returns what has run since it was called, or since the command began. It takes the privileges to
// trace, and guard.Main to be called first in main. The probes go whatever becomes of this process.
// Where the guard was killed, there is an error and what had run until then.
func Run(ctx context.Context, o Options) (*covered.Coverage, error) {
	if o.placed == nil {
		o.placed = func() {}
	}
	x, err := prepare(&o)
	defer x.close()
	if err == nil {
		err = x.run(ctx)
	} else {
		o.placed()
	}
	if err != nil && (!errors.Is(err, guard.ErrGone) || x.began.IsZero()) {
		return nil, err
	}
	c, failed := x.result(err)
	return c, cmp.Or(failed, err)
}

// run observes a process that is prepared, until the end.
func (x *observation) run(ctx context.Context) error {
	o := &x.options
	err := ctx.Err()
	if err != nil {
		err = record.ErrInterrupted
	} else {
		err = x.place()
	}
	if o.placed != nil {
		o.placed()
	}
	if err != nil {
		return record.KillUnstarted(o.Child, err)
	}
	if o.Child != nil {
		o.Child.Release()
	}
	if err := x.confine(); err != nil {
		return err
	}
	if o.Began != nil {
		o.Began(x.process.PID, len(x.watch.sites))
	}
	if o.Child == nil { // of a command, libraries are loaded from now on
		x.remarkUnmatched(recordreport.Unmatched)
	}
	if err := x.observe(ctx); err != nil {
		return err
	}
	x.remark()
	if o.Ending != nil && x.process.Alive() && !x.life.Over() {
		o.Ending(x.process.PID, x.watch.standing())
	}
	return nil
}

// remark says what of that which the user has asked for was not observed.
func (x *observation) remark() {
	p := x.process
	if x.life.Over() && p.Alive() {
		// memory that is gone may be that of a process which exits: it has no new one
		if now, err := p.Run(); err == nil {
			if !now.Over() {
				x.options.Remark(fmt.Sprintf("process %d (%s) has become another program by exec, "+
					"which is not observed: give that one, or attach to it with -p", p.PID, p.Name))
			}
			now.Close()
		}
	}
	never := recordreport.NeverMatched
	if x.options.Child != nil {
		never = func(glob string, _ int) string {
			return fmt.Sprintf("--lib %q has named no library: they are looked for every 5 ms at "+
				"first and every 0.5 s later, and the command may have been over before", glob)
		}
	}
	x.remarkUnmatched(never)
}

// remarkUnmatched says of globs that they have named no library so far.
func (x *observation) remarkUnmatched(text func(glob string, pid int) string) {
	if x.libraries == nil {
		return
	}
	for _, glob := range x.libraries.Unmatched() {
		x.options.Remark(text(glob, x.process.PID))
	}
}

// prepare reads the images. Nothing has touched the process then. What it returns is to be closed,
// after an error too; a command is killed then.
func prepare(o *Options) (x *observation, err error) {
	defer func() {
		if err != nil {
			err = record.KillUnstarted(o.Child, err)
		}
	}()
	if o.Child != nil {
		o.Process = o.Child.Process
	}
	if o.Remark == nil {
		o.Remark = func(string) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Child == nil { // it is at work; after a while, somebody waits for us
		restore := guard.LowerPriority()
		defer restore()
		defer time.AfterFunc(sampling, restore).Stop()
	}
	x = &observation{options: *o, process: o.Process}
	if x.life, err = o.Process.Run(); err != nil {
		return x, err
	}
	exe, err := o.Process.Executable()
	if err != nil {
		return x, err
	}
	x.images = append(x.images, observedImage{file: exe})
	if o.Child == nil && o.residual == nil {
		if x.sampler, err = sample.Start(o.Process, sample.Options{}); err != nil {
			o.Log.Warn("the process is not sampled", "why", err)
		}
	}
	began := time.Now()
	g, err := traced.GraphsOf(o.Process, exe, o.Selection)
	if err != nil {
		return x, err
	}
	x.images[0].graphs = g
	if err := x.addLibraries(); err != nil {
		return x, err
	}
	if err := x.load(); err != nil {
		return x, err
	}
	if x.sampler != nil {
		o.Process.Wait(time.Until(began.Add(sampling)))
	}
	return x, nil
}

// sampling is how long it takes at least to know what is hit often.
const sampling = time.Second

// libraryRoom is how many places there may be of libraries that are mapped later.
const libraryRoom = 1 << 19

// addLibraries reads the libraries that the selection names and that the process has mapped since.
// Those that come before the session is loaded become its images.
func (x *observation) addLibraries() error {
	if len(x.options.Selection.Libraries) == 0 {
		return nil
	}
	if x.libraries == nil {
		x.libraries = record.NewSelector(x.process, x.options.Selection,
			x.images[0].graphs.Image.Needed)
	}
	list, err := x.libraries.Next()
	if err != nil {
		return err
	}
	for _, lib := range list {
		if err := x.addLibrary(lib); err != nil && x.options.LibraryLeftOut != nil {
			x.options.LibraryLeftOut(lib.Path, err)
		}
	}
	return nil
}

func (x *observation) addLibrary(lib target.Library) error {
	f, err := x.process.OpenLibrary(lib)
	if err != nil {
		return err
	}
	m := observedImage{file: f}
	m.graphs, err = traced.GraphsOfLibrary(x.process, f, path.Base(lib.Path), x.options.Selection)
	if err == nil && x.session != nil {
		err = x.addTo(&m)
	}
	if err != nil {
		f.Close()
		return err
	}
	x.images = append(x.images, m)
	return nil
}

// addTo adds a library that has come to the session, and puts its probes in.
func (x *observation) addTo(m *observedImage) error {
	image, alone, err := x.sitesOf(m, true)
	if err != nil {
		return err
	}
	if len(m.sites) == 0 {
		return nil
	}
	if err := x.session.Add(image); err != nil {
		x.sites = m.first
		return err
	}
	return x.watch.add(m.sites, alone)
}

// sitesOf finds the sites of an image, behind those of the images before.
func (x *observation) sitesOf(m *observedImage, isLibrary bool) (image firsthit.Image,
	alone []bool, err error) {
	m.sites, m.first = sitesOf(m.graphs), x.sites
	if m.base, err = firsthit.Base(x.process, m.graphs.Image, m.file, isLibrary); err != nil {
		return image, nil, err
	}
	if r := x.options.residual; r != nil {
		if m.sites, err = r.choose(m.graphs, m.sites); err != nil {
			return image, nil, err
		}
	}
	x.sites += len(m.sites)
	image = firsthit.Image{Image: m.graphs.Image, File: m.file, Base: m.base}
	for _, s := range m.sites {
		image.Places = append(image.Places, s.place)
	}
	if err := image.Untouched(x.process); err != nil {
		return image, nil, fmt.Errorf("observe process %d (%s): %w", x.process.PID, x.process.Name,
			err)
	}
	return image, shownAlone(m.graphs, m.sites), nil
}

// load has the kernel take the BPF program.
func (x *observation) load() error {
	var all []site
	var alone []bool
	var images []firsthit.Image
	for i := range x.images {
		image, own, err := x.sitesOf(&x.images[i], i > 0)
		if err != nil {
			return err
		}
		all, alone = append(all, x.images[i].sites...), append(alone, own...)
		images = append(images, image)
	}
	if len(all) == 0 && x.options.residual == nil {
		return remedy.Errorf(remedy.Select, "observe process %d (%s): there is no place for any "+
			"probe", x.process.PID, x.process.Name)
	}
	o := firsthit.Options{Each: x.options.residual != nil}
	if len(x.options.Selection.Libraries) > 0 {
		o.Room = libraryRoom
	}
	s, err := firsthit.Load(x.process, images, o)
	if err != nil {
		return err
	}
	x.session, x.watch = s, newWatch(s, all, alone)
	if r := x.options.residual; r != nil {
		x.watch.each = func(p firsthit.Passage) { r.report(x, p) }
		if r.options.Edges {
			if !r.isSuccessor {
				r.options.Remark(r.edgesNotice(all))
			}
			x.edges = newEdgeWatch(x)
		}
		x.paths, err = r.watchPaths(x)
	}
	return err
}

// place puts the probes in.
func (x *observation) place() error {
	defer guard.RaisePriority()()
	err := x.watch.placeAll(x.hotSites(), x.options.Child == nil)
	if err == nil && x.paths != nil {
		err = x.paths.watch.Begin(x.options.Child != nil)
	}
	if err != nil {
		return cmp.Or(x.gone(), err)
	}
	return nil
}

// hotSites are those of routines that samples were in.
func (x *observation) hotSites() []bool {
	hot := make([]bool, len(x.watch.sites))
	for i := range x.watch.sites {
		hot[i] = x.watch.sites[i].wantsAny() && !x.watch.sites[i].isNew
	}
	if x.sampler == nil {
		return hot
	}
	counts, err := x.sampler.Take()
	if err != nil {
		x.options.Log.Warn("no samples were taken", "why", err)
	}
	_ = x.sampler.Close()
	x.sampler = nil
	for i := range x.images {
		m := &x.images[i]
		id, err := target.IDOf(m.file)
		if err != nil || counts.Images[id] == nil {
			continue
		}
		in := map[int]bool{}
		for offset := range counts.Images[id].Offsets {
			if addr, ok := m.graphs.Image.Address(offset); ok {
				if r := m.graphs.Containing(addr); r != nil {
					in[r.ID] = true
				}
			}
		}
		for k, s := range m.sites {
			hot[m.first+k] = in[s.routine]
		}
	}
	return hot
}

// gone says why the process cannot be observed any more; nil: it can.
func (x *observation) gone() error {
	var why error
	switch {
	case !x.process.Alive():
		why = target.ErrGone
	case x.session.GuardDead():
		why = guard.ErrGone
	default:
		return nil
	}
	return fmt.Errorf("observe process %d (%s): %w", x.process.PID, x.process.Name, why)
}

func (x *observation) confine() error {
	own := []cap.Value{cap.SYS_NICE, cap.SYS_PTRACE}
	guards := append(privilege.Probing(), cap.SYS_NICE)
	if len(x.options.Selection.Libraries) > 0 { // those that come are opened
		own = append(own, privilege.Libraries()...)
	}
	if x.paths != nil {
		own = append(own, cap.BPF) // counters are read
		if err := x.paths.watch.Confine(guards...); err != nil {
			return err
		}
	}
	if err := x.session.Confine(guards...); err != nil || x.options.Confine == nil {
		return err
	}
	return x.options.Confine(x.options.Output, own...)
}

// wakeAtEnd has the session wake when there is an end to be seen, until it is told that this is
// enough.
func (x *observation) wakeAtEnd(ctx context.Context) (enough func()) {
	var exited <-chan struct{} // of a process that is not our child's, each look shows it
	if x.options.Child != nil {
		exited = x.options.Child.Done()
	}
	done := make(chan struct{})
	var over sync.WaitGroup
	over.Go(func() {
		select {
		case <-done:
			return
		case <-ctx.Done():
		case <-exited:
		case <-x.session.GuardGone():
		}
		x.session.Wake()
	})
	return func() {
		close(done)
		over.Wait()
	}
}

// betweenChecks is how long after one look at what comes and goes the next follows: the longer it
// has been going on, the less matters when.
func (x *observation) betweenChecks() time.Duration {
	const least, most, share = 50 * time.Millisecond, time.Second, 10
	if x.paths != nil || x.edges != nil {
		return pathReadings / 4
	}
	return min(most, max(least, time.Since(x.began)/share))
}

// observe takes out what is hit often, until the end.
func (x *observation) observe(ctx context.Context) error {
	x.began = time.Now()
	defer x.wakeAtEnd(ctx)()
	if err := x.watch.beginSweeps(); err != nil {
		return err
	}
	var end time.Time
	if x.options.Duration > 0 {
		end = time.Now().Add(x.options.Duration)
	}
	for {
		switch {
		case ctx.Err() != nil, !end.IsZero() && !time.Now().Before(end), !x.process.Alive(),
			x.life.Over():
			return nil
		case x.session.GuardDead():
			return fmt.Errorf("observe process %d (%s): %w", x.process.PID, x.process.Name,
				guard.ErrGone)
		}
		if err := x.lookForLibraries(); err != nil {
			return err
		}
		if x.options.Child == nil {
			if err := x.forking.check(x); err != nil {
				if x.options.EndsEarly != nil {
					x.options.EndsEarly(err)
				}
				return nil
			}
		}
		if err := cmp.Or(x.paths.look(x, false), x.edges.weigh(x)); err != nil {
			return err
		}
		until := time.Now().Add(x.betweenChecks())
		if next := x.looked.Add(x.betweenLooks()); x.libraries != nil && next.Before(until) {
			until = next
		}
		if !end.IsZero() && until.After(end) {
			until = end
		}
		err := x.watch.sweep()
		if err == nil {
			err = x.watch.attend(until)
		}
		if err != nil {
			if !x.process.Alive() || x.life.Over() {
				return nil
			}
			return err
		}
	}
}

// imageOf is the index of the image that a site is in.
func (x *observation) imageOf(site int) int {
	return slices.IndexFunc(x.images, func(m observedImage) bool {
		return site >= m.first && site < m.first+len(m.sites)
	})
}

// betweenLooks is how long after one look for libraries the next follows: at first, when a command
// loads those that it is linked with, it is short.
func (x *observation) betweenLooks() time.Duration {
	const least, most, share = 5 * time.Millisecond, 500 * time.Millisecond, 10
	return min(most, max(least, time.Since(x.began)/share))
}

// lookForLibraries adds those that have come, if it is time to look.
func (x *observation) lookForLibraries() error {
	if x.libraries == nil || time.Since(x.looked) < x.betweenLooks() {
		return nil
	}
	x.looked = time.Now()
	err := x.addLibraries()
	if err != nil && (!x.process.Alive() || x.life.Over()) {
		return nil
	}
	return err
}

// fallen says of each site whether its probe does not stand that is thought to, and did not go when
// the observation ended, for such a reason.
func (x *observation) fallen(why error) ([]bool, error) {
	fallen := make([]bool, len(x.watch.sites))
	switch {
	case !x.process.Alive(), x.life.Over():
		return fallen, nil
	case errors.Is(why, guard.ErrGone), x.session.GuardDead(): // all have gone with it, or will
		if errors.Is(x.process.WhyGone(), target.ErrHeadless) { // or before
			for i, g := range x.watch.in {
				fallen[i] = g != nil
			}
		}
		return fallen, nil
	}
	list, err := x.watch.fallen()
	if err != nil && x.process.Alive() && !x.life.Over() {
		return nil, err
	}
	for _, i := range list {
		fallen[i] = true
	}
	return fallen, nil
}

// result says what has run until the observation ended, for such a reason.
func (x *observation) result(why error) (*covered.Coverage, error) {
	fallen, err := x.fallen(why)
	if err != nil {
		return nil, err
	}
	passages := make([]uint64, x.session.Counters())
	if err := x.session.Passages(passages); err != nil {
		return nil, err
	}
	total, standing := uint64(0), uint64(0)
	for i, n := range passages {
		total += n
		if x.watch.in[i/firsthit.Outcomes] != nil {
			standing += n
		}
	}
	x.options.Log.Info("probes were hit", "hits", total, "of those that stand", standing,
		"groups", len(x.watch.groups), "replaced", x.watch.replaced)
	c := &covered.Coverage{}
	for i := range x.images {
		m := &x.images[i]
		lo, hi := m.first, m.first+len(m.sites)
		seen := &observed{sites: m.sites, fallen: fallen[lo:hi],
			passages: passages[lo*firsthit.Outcomes : hi*firsthit.Outcomes]}
		for _, g := range x.watch.in[lo:hi] {
			seen.stands = append(seen.stands, g != nil)
		}
		lines, err := m.graphs.Image.Lines()
		if err != nil {
			x.options.Log.Warn("no source lines", "image", m.graphs.Image.Name, "why", err)
		}
		image, err := collect(m.graphs, lines, seen)
		if err != nil {
			return nil, err
		}
		c.Images = append(c.Images, *image)
	}
	return c, nil
}

func (x *observation) close() {
	if x.paths != nil {
		if err := x.paths.watch.Close(); err != nil {
			x.options.Log.Warn("the probes of paths", "err", err)
		}
	}
	if x.sampler != nil {
		_ = x.sampler.Close()
	}
	if x.session != nil {
		if n, err := x.session.Unreported(); err != nil || n > 0 {
			x.options.Log.Warn("the kernel had no room for reports", "reports", n, "err", err)
		}
		if x.watch != nil && x.process.Alive() && !x.session.GuardDead() {
			if err := x.watch.removeAll(); err != nil {
				x.options.Log.Warn("the probes", "err", err)
			}
		}
		if err := x.session.Close(); err != nil {
			x.options.Log.Warn("the probes", "err", err)
		}
	}
	for _, m := range x.images {
		m.file.Close()
	}
	if x.life != nil {
		x.life.Close()
	}
}
