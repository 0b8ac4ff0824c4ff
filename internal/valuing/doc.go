// Package valuing is what wpptrace values says and prints: its help, and how much of the values of
// a snapshot is known.
package valuing
