// Package recovery finds the routines of an x86-64 image, stripped or not, and the control flow
// graph of each: see package cfg for what they are, and which package finds what.
package recovery
