package top

import (
	"bytes"
	"encoding/gob"
	"testing"

	"wpptrace/query/querytest"
)

// BenchmarkUpdate is what a snapshot of a million paths takes: of the process that records, to pack
// it, and of the viewer, to unpack it and to ask it.
func BenchmarkUpdate(b *testing.B) {
	for _, trace := range querytest.Traces() {
		var sent bytes.Buffer
		send := func() {
			p, err := pack(trace.Packed)
			if err != nil {
				b.Fatal(err)
			}
			sent.Reset()
			if err := gob.NewEncoder(&sent).Encode(p); err != nil {
				b.Fatal(err)
			}
		}
		send()
		b.Run(trace.Name+"/send", func(b *testing.B) {
			for b.Loop() {
				send()
			}
			b.ReportMetric(float64(sent.Len()), "bytes")
		})
		b.Run(trace.Name+"/ask", func(b *testing.B) {
			for b.Loop() {
				var p packed
				if err := gob.NewDecoder(bytes.NewReader(sent.Bytes())).Decode(&p); err != nil {
					b.Fatal(err)
				}
				if _, err := newContentOf(&p, false); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
