// Package attach puts a plan's probes into a process, reads what they report, and takes them out.
// All probes of an image go in at once, as package uprobe has it for the running kernel; every
// probed byte is read back; nothing counts until every probe stands. A library may be added while
// the process is traced: it is held where it maps code. When the program that uses this package
// dies, by kill -9 too, its guard takes the probes out.
//
// A Session has its state in parts: images (the images in the process's memory, with their probes
// and tables), reports (the two ring buffers), threads (the links that follow them, and the drain
// at the end), and stops (who is stopped, and goes on when). Counters reads what the BPF program
// counts.
package attach
