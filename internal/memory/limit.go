package memory

import (
	"math"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// Allowed is what the control group of this process allows all that are in it: the kernel
// kills what takes more. 0: no less than there is.
func Allowed() Size {
	limit, err := memlimit.FromCgroup()
	if err != nil { // no limit, or nothing that says so
		return 0
	}
	return Size(min(limit, math.MaxInt64))
}

// FitBuffer makes a buffer, the size of which nobody gave, smaller where all that is Allowed is
// little: it may have a sixteenth.
func FitBuffer(buffer, allowed Size) Size {
	for allowed > 0 && buffer > allowed/16 {
		buffer /= 2
	}
	return buffer
}

// Wished is what the user has the collector keep to, by GOMEMLIMIT.
var Wished = debug.SetMemoryLimit(-1)

// KeepTo has the collector keep to so many bytes, or to what it may have of what is allowed, or
// wished.
func KeepTo(bytes int64) {
	debug.SetMemoryLimit(min(bytes, Wished, collectorsPart(Allowed())))
}

// collectorsPart is half of what is allowed: the rest is for what is not on its heap, and for what
// it has not collected yet.
func collectorsPart(allowed Size) int64 {
	if allowed == 0 {
		return math.MaxInt64
	}
	return int64(allowed / 2)
}
