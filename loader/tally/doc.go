// Package tally has the kernel count paths of a process. Pack makes the kernel's tables of counting
// plans (package counting), a Session has the probes in the process and reads the counters. Nothing
// is reported at a hit, so that it goes on for as long as one likes, in bounded memory.
//
// The probes belong to a guard, as those of package attach do: they go whatever becomes of us.
package tally
