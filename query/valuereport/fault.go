package valuereport

import (
	"fmt"

	"wpptrace/compress/wet"
	"wpptrace/compress/wpp"
	"wpptrace/query/executed"
	"wpptrace/query/names"
	"wpptrace/query/report"
	"wpptrace/query/values"
)

// Fault says by which signal the process ended, at which instruction, and where that would have
// accessed memory.
func Fault(s *wpp.Snapshot, e *wet.Executed) string {
	at := report.Where(s, names.Of(s), values.Instruction{Routine: e.Routine, Addr: e.Addr},
		values.SpanOf(&s.Routines[e.Routine].Blocks[e.Block], e.Insn))
	accesses := ""
	for i := range e.Accesses {
		accesses += string(executed.AppendPlace(nil, &e.Accesses[i]))
	}
	if accesses != "" {
		accesses = ":" + accesses
	}
	return SignalOf(s) + " at " + at + accesses
}

// SignalOf names the signal that ended the process; "": none did, or that is not known.
func SignalOf(s *wpp.Snapshot) string {
	status := s.Figures.WaitStatus
	if status == nil || *status&0x7f == 0 {
		return ""
	}
	n := *status & 0x7f
	if name := map[uint32]string{4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE",
		9: "SIGKILL", 11: "SIGSEGV", 13: "SIGPIPE", 15: "SIGTERM"}[n]; name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", n)
}
