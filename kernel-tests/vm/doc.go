// Package vm runs the tests of kernels on other kernels than the one that runs, in machines that
// QEMU emulates: Debian's, fetched by apt and kept in the user's cache, from which they may be
// deleted for newer ones. A machine has the files that it is given, one command to run, and no
// network.
package vm
