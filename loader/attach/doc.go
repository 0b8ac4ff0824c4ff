// Package attach puts a plan's probes into a process, reads what they report, and takes them out.
// All probes of an image go in at once, as package uprobe has it for the running kernel; every
// probed byte is read back; nothing counts until every probe stands. A library may be added while
// the process is traced: it is held where it maps code. When the program that uses this package
// dies, by kill -9 too, its guard takes the probes out.
package attach
