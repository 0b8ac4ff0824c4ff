// Package valuing has the questions about values that the commands values, slice, watch, step and
// hot --data ask: their flags, their help, and their answers, which are of a snapshot alone.
package valuing
