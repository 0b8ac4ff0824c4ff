// Package verify proves that the probe-free routes of a plan are sound, by the rules that package
// plan lists, from the definition and with nothing of the planner's own searches.
//
// It takes from the plan which routines are traced, the sites, the table of calls and which
// routines may end without an event. It works out everything else anew: who calls what, whom
// external code may enter, what may have run when control comes back. It looks for two probe-free
// routes between the same places, for circles without an event, within a routine and over calls,
// and for probe-free routes that external code could break. That control flow graphs, frames and
// jump tables are right, and that the library functions known to be harmless are, it takes for
// granted.
package verify
