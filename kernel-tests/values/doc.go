// Package valuetests holds what wpptrace says of values against runs that were single-stepped with
// all registers and memory operands: nothing that it gives may differ, and of nearly all
// instructions all is given.
package valuetests
