// Package valuereport writes answers about values: executions of single instructions, slices, and
// who accessed some bytes. It decides nothing.
package valuereport
