// Package overlapping brings together what package overlap finds in a program and what package
// overlapped counts and keeps: the shapes of its routines, and what a decoder says of them. A
// Report is what wpptrace plan --overlap prints. Nothing is attached or traced.
package overlapping
