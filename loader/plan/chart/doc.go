// Package chart shows what a plan makes of one routine: its blocks, the probes in them, what each
// event records, and the probe-free routes from one event to the next. It is the result as data,
// which encoding/json prints, as text, and as a graph for Graphviz. It reads the plan alone, and no
// search of the planner's.
package chart
