// Package wet is the whole execution trace (Zhang and Gupta 2004): what instructions computed,
// beside the whole program path, as what a model mispredicts. It replays any part of a thread from
// a snapshot alone, on any system.
//
// A Walker goes along the paths of a thread and runs each instruction on a model of the thread's
// registers (package machine) and memory (package memory). What the model cannot know it asks an
// Oracle for: while recording that is what hits have seen, afterwards what the file says of it. So
// recording and replay are the same walk, and come to the same values. The position in the stream
// of paths is the timestamp of section 3.1.
//
// From a hit, or a mark, to the next is a stretch. A recording works a stretch out, compares it at
// its end with what the hit there has seen, and takes it back where they differ: nothing is known
// of it then. Where control was to go, by the model, and where the next path begins say whether
// external code has run between them. It may have changed all registers but those that calls leave
// as they are, and all of memory but private bytes: see package memory.
//
// A Log has what the model mispredicts. It is cut into segments of half a million instructions or
// so, fewer where much is said: all take about as long to replay, see Log.Work. Each begins with
// the registers and an empty memory: what the model knew before and is loaded again is said again,
// but once for a group of segments: see image. So a segment is replayed without those before it,
// and what it says is read as the replay comes there: see transcript. Its head says how often each
// path ran in it: which segment has the Nth execution of an instruction is known without reading
// paths.
package wet
