// Package values answers what instructions computed, read and wrote, of snapshots that have values
// (Zhang and Gupta 2004). It replays what is stored, and needs neither the program nor the kernel.
package values
