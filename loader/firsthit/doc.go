// Package firsthit knows which places of a process have run since probes were put there. A Session
// puts the probes of some places in as a Group, which is taken out as one, and counts passages by
// place and outcome in memory that it shares with the kernel: to look costs no system call. What is
// passed often is reported at once, so that its group can go within a millisecond.
//
// A place may be in several groups at the same time, whose probes are one breakpoint. So a group is
// replaced without a moment in which the rest of it has no probes: the new one goes in first.
//
// The probes belong to a guard, as those of package attach do: they go whatever becomes of us.
package firsthit
