// Package kerneltests proves wpptrace end to end, on a real kernel: it has only tests.
//
// Each runs as root. They promise that what is reported is what single-stepping sees, that the
// target notices nothing, and that the plans for programs as a distribution ships them cover what
// they should, in the time that they should take. By default a part of the matrix runs, in a few
// minutes; WPPTRACE_MATRIX=1 runs all of it, for hours, WPPTRACE_SOAK=1 on its longest inputs
// besides, for days.
//
// Package vm runs them on other kernels. There all comes from the directory WPPTRACE_BUILT, made
// beforehand with WPPTRACE_BUILD: compiled programs, and what they execute by single-stepping.
package kerneltests
