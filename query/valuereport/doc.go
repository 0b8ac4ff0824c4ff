// Package valuereport writes answers about values: executions of single instructions, slices,
// who accessed some bytes, hot sequences of addresses. It decides nothing.
package valuereport
