package values_test

import (
	"fmt"
	"testing"

	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wpp/faults"
	"wpptrace/query/querytest"
	"wpptrace/query/values"
)

// TestFault: the instruction that ended the process is known, and where it would have accessed
// memory, if the last one that was executed leads there; what it would have read is not.
func TestFault(t *testing.T) {
	s := querytest.Faulted()
	e, err := values.FaultOf(s, 0)
	if err != nil || e == nil || e.Addr != 0x40100b || e.TID != 4711 || len(e.Written) != 0 ||
		len(e.Accesses) != 1 {
		t.Fatalf("%+v, %v", e, err)
	}
	if a := &e.Accesses[0]; !a.Write || a.Addr != 0x7000 || a.Size != 8 ||
		a.At != machine.Confirmed || a.Known != machine.Unknown {
		t.Errorf("%+v", a)
	}
	s.Sections[len(s.Sections)-1] = faults.List{{Addr: 0x401008}}.Section()
	if e, err = values.FaultOf(s, 0); err != nil || e.Addr != 0x401008 {
		t.Errorf("where nothing leads: %+v, %v", e, err)
	}
	s.Sections[len(s.Sections)-1] = faults.List{{Addr: 0x401001}}.Section()
	if e, err = values.FaultOf(s, 0); err == nil {
		t.Errorf("at no instruction: %+v", e)
	}
}

// TestEnd: the end is what faulted, or else what was executed last.
func TestEnd(t *testing.T) {
	for want, s := range map[string]*values.Question{
		"40100b faulted": {}, "40100e": {Threads: []int{4711}}} {
		of := querytest.Faulted()
		if want == "40100e" {
			of = querytest.Values()
		}
		w, err := values.Find(of, "end")
		if err != nil || w.Kind != values.End {
			t.Fatal(w, err)
		}
		s.Where = w
		x, err := values.FindExecution(of, s)
		if err != nil || x.Of != 1 || len(x.Ran) != 1 {
			t.Fatalf("%+v, %v", x, err)
		}
		got := fmt.Sprintf("%x", x.Ran[0].Addr)
		if x.Fault != nil {
			got += " faulted"
		}
		var each string
		if err := values.Each(of, s, func(n uint64, e *wet.Executed) error {
			each = fmt.Sprintf("%x", e.Addr)
			return nil
		}); err != nil || got != want || each != want[:6] {
			t.Errorf("%s and %s, %v, want %s", got, each, err, want)
		}
		s.Instance = 2
		if err := values.Each(of, s, nil); err == nil {
			t.Error("there is a second end")
		}
	}
}
