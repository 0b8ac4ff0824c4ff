// Package dap is a server of the Debug Adapter Protocol: an editor moves through a recording with
// values, forwards and backwards, and looks at variables and registers, as in a debugger.
//
// It promises that whatever a client sends is answered, that what is not known is shown as unknown,
// and that a client that goes away ends it. Each thread has a place of its own: what moves one does
// not move another. It builds on any system.
//
// The protocol: https://microsoft.github.io/debug-adapter-protocol/specification
package dap
