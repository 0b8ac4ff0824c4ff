// Package figures sums up a plan: how many routines are traced, by how many probes, how often these
// are expected to be hit, and what is left out.
package figures
