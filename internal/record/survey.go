package record

import (
	"log/slog"
	"time"

	"wpptrace/compress/wpp/samples"
	"wpptrace/internal/record/overhead"
	"wpptrace/internal/record/sample"
	"wpptrace/internal/traced"
	"wpptrace/loader/attach"
	"wpptrace/loader/plan"
	"wpptrace/loader/target"
)

// A Survey is what is known of a process before anything is attached.
type Survey struct {
	CPUTime *samples.Profile // where it goes; no file is an image of any snapshot
	Plan    *plan.Plan       // that a recording without a selection would begin with
	Took    time.Duration    // to plan
	Load    float64          // CPUs that the process would use if it had them
	Traced  samples.Share    // of its CPU time, that goes to traced routines

	forecast overhead.Forecast
}

// SurveyOf samples a process for a time, and plans meanwhile and afterwards what a recording within
// a budget would begin with, a share of the process's own CPU time. It attaches nothing.
// notSampled is why it could not be sampled; one that is sample.ErrNotAllowed says that nobody like
// us may sample here. err is why it cannot be recorded: what is known by then is in the survey.
func SurveyOf(p *target.Process, d time.Duration, budget float64) (s *Survey, notSampled,
	err error) {
	s = &Survey{}
	ofProcess := &sampling{err: errStopped}
	sampler, notSampled := sample.Start(p, sample.Options{})
	if notSampled == nil {
		ofProcess = newSampling(sampler, slog.New(slog.DiscardHandler))
		defer ofProcess.close()
		for end := time.Now().Add(d); time.Now().Before(end) && !p.Wait(min(d, samplePause)); {
			ofProcess.take()
		}
		ofProcess.take()
		notSampled = ofProcess.err
		s.CPUTime = ofProcess.sum(nil, nil)
	}
	exe, err := p.Executable()
	if err != nil {
		return s, notSampled, gone(p, err)
	}
	defer exe.Close()
	began := time.Now()
	o := Options{Process: p, Overhead: budget}.withDefaults()
	o.Selection.Chooser = newHotRoutines(&o, ofProcess, func(Event) {})
	program, err := traced.LoadOf(p, exe, o.Selection)
	if err == nil {
		err = program.CheckRecordable(p.File)
	}
	if err != nil {
		return s, notSampled, err
	}
	s.Plan, s.Took = program.Plan, time.Since(began)
	id, err := target.IDOf(exe)
	if err != nil {
		return s, notSampled, err
	}
	s.Traced = ofProcess.traced(s.Plan, []target.FileID{id})
	_, now, err := measureLoad(p)
	s.Load = now.wants
	s.forecast = overhead.NewForecast(s.Plan, attach.TypicalCost(), program.IsPart())
	return s, notSampled, err
}

// Windows is how many windows a minute a budget allows the process at its present load, each of
// which holds it up for so long; all says that it allows its probes to stand all the time, known
// that either is known: few samples say nothing.
func (s *Survey) Windows(budget float64,
	window time.Duration) (perMinute float64, all, known bool) {
	const few = 50
	switch {
	case s.Load < hardly:
		return 0, true, true
	case s.Traced.Of < few:
		return 0, false, false
	}
	more := s.Traced.Value() * (s.forecast.SlowDown(overhead.UsualTime) - 1) // that hits take
	if more <= budget {
		return 0, true, true
	}
	cost := window.Minutes() * more / (1 + more) * max(1, s.Load)
	return budget * s.Load / cost, false, true
}
