// Package server starts real servers and programs as a distribution ships them, and connects
// clients to them that know what to ask.
//
// It promises that nothing is left: whatever it starts lives in a directory and in a process group
// of its own, listens on the loopback interface alone, on a port that was free, and ends with
// Running.Stop. It touches no process that it has not started, and leaves the machine's own servers
// and their files alone. What refuses to run as root runs as another user.
package server
