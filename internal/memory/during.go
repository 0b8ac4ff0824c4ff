package memory

import (
	"runtime"
	"runtime/debug"
)

// During has the collector keep to so many bytes, or to what is wished, until restore is called.
// That gives back to the system what is garbage then, which takes as long as a collection, and has
// the collector keep to what it kept to before; but to a quarter more than what is alive where that
// is more: it would do nothing but collect.
func During(bytes int64) (restore func()) {
	before := debug.SetMemoryLimit(min(bytes, Wished))
	return func() {
		debug.FreeOSMemory()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		alive := int64(m.Sys-m.HeapSys) + int64(m.HeapAlloc)
		debug.SetMemoryLimit(max(before, min(alive+alive/4, Wished)))
	}
}
