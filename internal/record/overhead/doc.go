// Package govern keeps what tracing costs a process within a budget: a share of the CPU time that
// is the process's own. It knows no process and no clock: it is told what was used, and says
// whether probes may stand.
package govern
