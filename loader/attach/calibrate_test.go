package attach

import (
	"testing"
	"time"

	"wpptrace/bpf"
)

func TestCalibrate(t *testing.T) {
	s := &Session{}
	if err := bpf.LoadTracerObjects(&s.objects, nil); err != nil {
		t.Fatal(err)
	}
	defer s.objects.Close()
	began := time.Now()
	calibrator, err := s.NewCalibrator()
	if err != nil {
		t.Fatal(err)
	}
	c := calibrator.Measure(9, TypicalReport)
	if err := calibrator.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%v a hit, %v single-stepped; it took %v", c.Emulated, c.Stepped, time.Since(began))
	if c.Emulated < 50*time.Nanosecond || c.Emulated > 50*time.Microsecond {
		t.Errorf("an emulated hit takes %v", c.Emulated)
	}
	if c.Stepped < c.Emulated {
		t.Errorf("a single-stepped hit takes %v, less than an emulated one, %v", c.Stepped,
			c.Emulated)
	}
	if after := timeCalls(emulated, 9, 100); after > c.Emulated/5 {
		t.Errorf("without a probe a call takes %v: it was not taken out", after)
	}
}
