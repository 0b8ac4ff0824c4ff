package query

import (
	"io"
	"math"
	"time"

	"wpptrace/compress/ops"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/samples"
	"wpptrace/internal/saturating"
	"wpptrace/query/internal/forest"
)

// A Stat is the figures of a snapshot: those of Larus's table 1, the cost of the tracing, and what
// was lost. What is not known is 0, "" or nil: in JSON it is null.
type Stat struct {
	Command []string `json:"command"` // that was traced, with its arguments
	PID     int      `json:"pid"`     // of the process
	Started string   `json:"started"` // when the recording was, RFC 3339
	// on what occasion: exited, interrupted, duration, exec, slow-down, guard, failure; not known
	// where it went on
	Ended  string  `json:"ended"`
	Status *uint32 `json:"exit_status"` // of the process, if it exited
	// the number of that which killed it, if one did
	Signal uint32 `json:"killed_by_signal" zero:"-"`
	Kernel string `json:"kernel"`           // the release that it ran on
	Tool   string `json:"wpptrace_version"` // of the wpptrace that recorded

	Paths         uint64 `json:"paths"`          // executions of acyclic paths
	DistinctPaths uint64 `json:"distinct_paths"` // Larus's "Num Acyclic Paths"
	Instructions  uint64 `json:"instructions"`   // that these executions ran
	Threads       int    `json:"threads"`        // that were recorded

	// of the grammars, of which a path profile has none
	Rules        int     `json:"rules" zero:"-"`
	RHSSymbols   int     `json:"rhs_symbols" zero:"-"`    // on their right-hand sides
	RulesPerPath float64 `json:"rules_per_path" zero:"-"` // per distinct path
	// of the trace without compression, in Larus's operations
	TraceBytes        uint64 `json:"trace_bytes"`
	GrammarASCIIBytes uint64 `json:"grammar_ascii_bytes" zero:"-"` // Larus's "WPP Size"
	// of the snapshot file, program tables included
	GrammarBytes uint64 `json:"grammar_bytes"`
	// trace_bytes / grammar_ascii_bytes, Larus's "Trace/WPP"
	RatioASCII float64 `json:"ratio_ascii" zero:"-"`
	// trace_bytes / grammar_bytes
	Ratio     float64 `json:"ratio"`
	TraceRate float64 `json:"trace_bytes_per_second"` // of the recording
	// Larus's "WPP/Sec"
	GrammarRate        float64 `json:"grammar_ascii_bytes_per_second" zero:"-"`
	BitsPerInstruction float64 `json:"bits_per_instruction"` // of the snapshot file

	DurationSeconds float64 `json:"duration_seconds"` // of the recording
	// that the process used meanwhile, with what tracing took of it
	CPUSeconds float64 `json:"cpu_seconds" zero:"-"`
	Hits       uint64  `json:"hits"` // of probes
	// of these, on single-stepped instructions
	HitsSingleStepped uint64  `json:"hits_single_stepped"`
	HitsPerPath       float64 `json:"hits_per_path"` // hits / paths
	// ns, on average, of those that are not single-stepped
	HitTime int64 `json:"ns_per_hit" zero:"-"`
	// ns of a hit, on average, over a bare probe
	ReportTime int64 `json:"ns_per_hit_over_probe" zero:"-"`
	// events that the kernel sent, of 8 bytes each
	Words uint64 `json:"words"`
	// CPU time over what it would have been without tracing; 100: that or more
	SlowDown float64 `json:"slow_down" zero:"-"`
	// slow_down is what it was at least
	SlowDownVague bool `json:"slow_down_vague"`
	// where it is vague: what it was at most
	SlowDownMost float64 `json:"slow_down_most" zero:"-"`
	// where it is vague: this, if one figure is wanted
	SlowDownLikely float64 `json:"slow_down_likely" zero:"-"`
	Probes         uint64  `json:"probes"` // that stood in the process
	// of these, on single-stepped instructions
	ProbesSingleStep uint64 `json:"probes_single_stepped"`
	RoutinesTotal    int    `json:"routines_total"`    // of the images
	RoutinesTraced   int    `json:"routines_observed"` // that were traced
	// that a path of the trace is in
	RoutinesMet int    `json:"routines_met"`
	Lost        uint64 `json:"lost"` // events
	// places where events were lost
	Gaps uint64 `json:"gaps"`
	// events that did not fit the program
	Anomalies uint64 `json:"anomalies"`
	// that were traced; 0: all the time was
	Windows uint64 `json:"windows"`
	// the share of the program's own CPU time that was traced; not known: at most sampled_most
	Sampled float64 `json:"sampled"`
	// what sampled is at least, 95 times of 100; not known where sampled is not
	SampledLeast float64 `json:"sampled_least" zero:"-"`
	SampledMost  float64 `json:"sampled_most" zero:"-"` // what it is at most
	// the longest that a window, with its probes going in and out, held the process up, at most
	LongestStall float64 `json:"longest_stall_seconds" zero:"-"`
}

// NewStat computes the figures of a snapshot, of which fileBytes is the size of the file, 0 when it
// is in none. It takes time linear in the grammars and the program tables.
//
// TraceBytes is what the uncompressed trace would take in the operations of Larus 1999, section 2:
// a byte for the operation and 0, 1, 2, 4 or 8 for its operand, whichever is enough, so that most
// paths take his three. Marks take nothing: he has none.
func NewStat(s *wpp.Snapshot, fileBytes uint64) (x Stat, err error) {
	defer wpp.Recover(&err)
	f, threads, err := allCounted(s)
	if err != nil {
		return x, err
	}
	figures := &s.Figures
	x = Stat{
		Command:           append([]string{}, figures.Command...),
		PID:               figures.PID,
		Started:           timestamp(figures.Start),
		Ended:             figures.Ended,
		Kernel:            figures.Kernel,
		Tool:              figures.Tool,
		Threads:           threads,
		GrammarBytes:      fileBytes,
		DurationSeconds:   figures.Duration.Seconds(),
		CPUSeconds:        figures.CPUTime.Seconds(),
		Hits:              figures.Hits,
		HitsSingleStepped: figures.HitsSingleStep,
		HitTime:           figures.HitTime.Nanoseconds(),
		ReportTime:        figures.ReportTime.Nanoseconds(),
		Words:             figures.Events,
		SlowDown:          figures.SlowDown,
		SlowDownVague:     figures.SlowDownVague,
		Probes:            figures.Probes,
		ProbesSingleStep:  figures.ProbesSingleStep,
		RoutinesTotal:     len(s.Routines),
		Lost:              figures.Lost,
		Gaps:              figures.Gaps,
		Anomalies:         figures.Anomalies,
		Windows:           figures.Windows,
		Sampled:           Sampled(figures),
		SampledLeast:      figures.SampledLeast,
		SampledMost:       figures.SampledMost,
		LongestStall:      figures.HeldUp.Seconds(),
	}
	x.countPaths(s, f)
	x.countRoutines(s)
	x.TraceBytes = traceBytes(s, f)
	for i := range s.Threads {
		g := s.Threads[i].Grammar
		x.Rules += g.Rules()
		x.RHSSymbols += g.BodySymbols()
		n, _ := g.WriteASCII(io.Discard)
		x.GrammarASCIIBytes += uint64(n)
	}
	x.RulesPerPath = Share(uint64(x.Rules), x.DistinctPaths)
	x.RatioASCII = Share(x.TraceBytes, x.GrammarASCIIBytes)
	x.Ratio = Share(x.TraceBytes, x.GrammarBytes)
	x.BitsPerInstruction = 8 * Share(x.GrammarBytes, x.Instructions)
	if x.DurationSeconds > 0 {
		x.TraceRate = float64(x.TraceBytes) / x.DurationSeconds
		x.GrammarRate = float64(x.GrammarASCIIBytes) / x.DurationSeconds
	}
	x.HitsPerPath = Share(x.Hits, x.Paths)
	if w := figures.WaitStatus; w != nil {
		if x.Signal = *w & 0x7f; x.Signal == 0 {
			status := *w >> 8 & 0xff
			x.Status = &status
		}
	}
	likely, most := tracedShare(s)
	x.SlowDownMost = x.mostSlowDown(figures.SlowDownMost, most)
	x.SlowDownLikely = x.likelySlowDown(figures.SlowDownLikely, likely)
	return x, nil
}

// tracedShare is which share of the CPU time traced routines have while they are not slowed down,
// by samples: most likely and at most; 1 where there are none.
func tracedShare(s *wpp.Snapshot) (likely, most float64) {
	p, err := samples.Of(s)
	if p == nil || err != nil || p.Total() == 0 {
		return 1, 1
	}
	share := samples.Share{Of: p.Total()}
	for i := range p.Files {
		for _, in := range p.Files[i].Routines {
			if s.Routines[in.Routine].LeftOut == "" {
				share.Samples += in.Samples
			}
		}
	}
	_, most = share.Interval()
	return max(share.Value(), 1/float64(share.Of)), most
}

// mostSlowDown is what a slow-down that is vague is at most, by CPU times alone so much, 0 where
// they say nothing: the instructions that ran took some time, too, at most such a share of all.
func (x *Stat) mostSlowDown(byTimes, traced float64) float64 {
	if !x.SlowDownVague || x.CPUSeconds == 0 || x.Instructions == 0 {
		return byTimes
	}
	most := max(x.SlowDown, x.slowDownAt(InstructionTime, traced))
	if byTimes > 0 {
		most = min(most, byTimes)
	}
	return most
}

// likelySlowDown is what a slow-down that is vague most likely is, by CPU times so much, 0 where
// they say nothing: then, as if such a share of the program's own time went to the instructions
// that were recorded, and the rest to the kernel, libraries and other code.
func (x *Stat) likelySlowDown(byTimes, traced float64) float64 {
	likely := byTimes
	if likely == 0 && x.CPUSeconds > 0 && x.Instructions > 0 {
		likely = x.slowDownAt(UsualInstructionTime, traced)
	}
	if likely == 0 || !x.SlowDownVague {
		return 0
	}
	likely = max(likely, x.SlowDown)
	if x.SlowDownMost > 0 {
		likely = min(likely, x.SlowDownMost)
	}
	return likely
}

// slowDownAt is the slow-down if the instructions that were recorded would have taken so many ns
// each, which is such a share of all time.
func (x *Stat) slowDownAt(instruction, traced float64) float64 {
	return max(1, 1e9*x.CPUSeconds*traced/(instruction*float64(x.Instructions)))
}

// InstructionTime is the least that an instruction takes where nothing is probed, ns: eight a cycle
// at six gigahertz. In a loop of nops, 23 a nanosecond were seen.
const InstructionTime = 0.02

// UsualInstructionTime is what an instruction takes in code that computes, ns.
const UsualInstructionTime = 0.2

func timestamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// CountInstructions counts the instructions of traced code that ran, as a Stat has them, without
// the rest. Cost: linear in the grammars.
func CountInstructions(s *wpp.Snapshot) (n uint64, err error) {
	defer wpp.Recover(&err)
	f, _, err := allCounted(s)
	if err != nil {
		return 0, err
	}
	var x Stat
	x.countPaths(s, f)
	return x.Instructions, nil
}

func (x *Stat) countPaths(s *wpp.Snapshot, f *forest.Forest) {
	for v, n := range f.Counts() {
		if n == 0 || s.Symbols[v].IsMark {
			continue
		}
		x.DistinctPaths++
		x.Paths = saturating.Add(x.Paths, n)
		x.Instructions = saturating.Add(x.Instructions, saturating.Mul(n, s.SymbolCost(uint32(v))))
	}
}

func (x *Stat) countRoutines(s *wpp.Snapshot) {
	met := make(map[*wpp.Routine]bool)
	for sym := range s.Symbols {
		if r := s.RoutineOf(uint32(sym)); r != nil {
			met[r] = true
		}
	}
	x.RoutinesMet = len(met)
	for i := range s.Routines {
		if s.Routines[i].LeftOut == "" {
			x.RoutinesTraced++
		}
	}
}

// traceBytes is the size of all threads' operations. Which routines are entered and left follows
// from the paths and the marks, as package ops has it.
func traceBytes(s *wpp.Snapshot, f *forest.Forest) uint64 {
	var sum uint64
	add := func(n, size uint64) { sum = saturating.Add(sum, saturating.Mul(n, size)) }
	hasResumed := false
	for i := range s.Threads {
		add(1, operationBytes(uint64(s.Threads[i].TID)))
	}
	for sym, n := range f.Counts() {
		switch p := &s.Symbols[sym]; {
		case p.IsMark && p.Mark == ops.Unwind:
			add(n, p.N)
		case p.IsMark && p.Mark == ops.Resume:
			hasResumed = true
		case !p.IsMark:
			add(n, operationBytes(p.Path))
			if p.Start == ops.StartEntry {
				add(n, operationBytes(uint64(p.Routine)))
			}
			if p.End == ops.EndReturn || p.End == ops.EndTail {
				add(n, 1)
			}
		}
	}
	if hasResumed {
		for routine, times := range countResumed(s, f) {
			add(times, operationBytes(uint64(routine)))
		}
	}
	return sum
}

// resumed counts, by routine, the paths after a resume mark that do not begin at the routine's
// entry: activations that are entered there.
type resumed struct {
	symbols []wpp.Symbol
	length  int // symbols since begin, up to 2
	weight  uint64
	entered map[int]uint64
}

func countResumed(s *wpp.Snapshot, f *forest.Forest) map[int]uint64 {
	r := &resumed{symbols: s.Symbols, entered: make(map[int]uint64)}
	f.Read(1, r)
	return r.entered
}

func (r *resumed) Begin(weight uint64) { r.length, r.weight = 0, weight }

func (r *resumed) Push(line []forest.Terminal, inside int) {
	if r.length = min(2, r.length+1); r.length < 2 || inside >= 2 {
		return
	}
	mark, p := &r.symbols[line[len(line)-2].Symbol], &r.symbols[line[len(line)-1].Symbol]
	if mark.IsMark && mark.Mark == ops.Resume && !p.IsMark && p.Start != ops.StartEntry {
		r.entered[p.Routine] = saturating.Add(r.entered[p.Routine], r.weight)
	}
}

func operationBytes(operand uint64) uint64 {
	switch {
	case operand <= math.MaxUint8:
		return 2
	case operand <= math.MaxUint16:
		return 3
	case operand <= math.MaxUint32:
		return 5
	default:
		return 9
	}
}

// Sampled is the share of the program's own CPU time that was traced; 0, where that is not known.
func Sampled(f *wpp.Figures) float64 {
	switch {
	case !f.IsShareKnown():
		return 0
	case !f.IsSampled():
		return 1
	}
	return f.Sampled
}

// Share is a part as a share of a whole: 0 of nothing.
func Share(part, whole uint64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
