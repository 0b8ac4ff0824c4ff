package memory

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// During has the collector keep to so many bytes, or to what is wished, until restore is called.
// That gives back to the system what is garbage then, which takes as long as a collection. The
// collector keeps to a quarter more than what is alive then, or 64 MB more, where that is more than
// what it kept to before, or more than half of the bytes is alive: it would do nothing but collect,
// or take as much again.
func During(bytes int64) (restore func()) {
	const room = 64 << 20
	before := debug.SetMemoryLimit(min(bytes, Wished))
	return func() {
		debug.FreeOSMemory()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		alive := int64(m.Sys-m.HeapSys) + int64(m.HeapAlloc)
		if enough := alive + min(room, alive/4); enough > before || alive > bytes/2 {
			before = min(enough, Wished)
		}
		debug.SetMemoryLimit(before)
	}
}

// Alive is how many bytes of the heap were alive when the collector ran last.
func Alive() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
