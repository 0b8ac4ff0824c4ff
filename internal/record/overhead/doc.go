// Package overhead knows what tracing costs a process, and keeps it within a budget: what a hit
// costs on this machine (Meter), how much slower the process runs (Estimate), how much slower a
// plan lets expect (Forecast), what share of the process's own CPU time probes may take (budget),
// and when windows open and close so that they take no more (Scheduler), and which sites are
// counted between them, to know what share of the run they are (Controls). Its callers
// measure what was used and when; it attaches nothing and stops nothing.
package overhead
