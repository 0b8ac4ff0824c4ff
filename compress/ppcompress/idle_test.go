package ppcompress

import (
	"bytes"
	"context"
	"path/filepath"
	"runtime"
	"testing"

	"wpptrace/compress/raw"
	"wpptrace/compress/spill"
	"wpptrace/compress/wpp/store"
)

// idle is the trace of threads that ran nothing.
func idle(threads int) []byte {
	var out bytes.Buffer
	w := raw.NewWriter(&out, describe)
	for i := range threads {
		w.Thread(raw.Thread{TID: i})
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return out.Bytes()
}

// TestIdleThreadsAreCheap: each took a grammar and 64 KiB of a coder's tables, so that 200,000 took
// half a minute and half a gigabyte.
func TestIdleThreadsAreCheap(t *testing.T) {
	const threads = 20_000
	trace := idle(threads)
	path := filepath.Join(t.TempDir(), "x.wpp")
	rec := spill.New(store.NewDraft(path), spill.Limits{})
	begin := allocated()
	s, err := Trace(bytes.NewReader(trace), "x", rec)
	if err != nil {
		t.Fatal(err)
	}
	made := allocated()
	if err := rec.Finish(context.Background(), s); err != nil {
		t.Fatal(err)
	}
	written := allocated()
	if took := (made - begin) / threads; took > 1500 {
		t.Errorf("compressing takes %d bytes for each thread", took)
	}
	if took := (written - made) / threads; took > 32<<10 {
		t.Errorf("writing takes %d bytes for each thread", took)
	}
	back, err := store.ReadFile(path)
	if err != nil || len(back.Threads) != threads ||
		back.Threads[threads-1].Grammar.Length(0) != 0 {
		t.Errorf("%d threads are read back: %v", len(back.Threads), err)
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

func BenchmarkIdleThreads(b *testing.B) {
	const threads = 20_000
	trace := idle(threads)
	path := filepath.Join(b.TempDir(), "x.wpp")
	for b.Loop() {
		rec := spill.New(store.NewDraft(path), spill.Limits{})
		s, err := Trace(bytes.NewReader(trace), "x", rec)
		if err == nil {
			err = rec.Finish(context.Background(), s)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/threads, "ns/thread")
}
