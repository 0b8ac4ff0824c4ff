// Package wet is the whole execution trace (Zhang and Gupta 2004): what instructions computed,
// beside the whole program path, as what a model of memory mispredicts. It replays any part of a
// thread from a snapshot alone, on any system.
package wet
