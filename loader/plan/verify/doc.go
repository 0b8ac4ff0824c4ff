// Package verify proves that the silence of a plan is sound, by the rules that package plan lists,
// from the definition and with nothing of the planner's own searches.
//
// It takes from the plan which routines are observed, the sites, the table of calls and who may be
// silent, and works out everything else anew: who calls what, whom code that is not observed may
// enter, what may have run when control comes back. It looks for two silent ways between the same
// places, silent circles within a routine and over calls, and silence that code which is not
// observed could break. That control flow graphs, frames and jump tables are right, and that the
// library functions known to be harmless are, it takes for granted.
package verify
