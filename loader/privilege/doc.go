// Package privilege gives up what this process may do, once it needs it no more: a bug in what
// decodes and writes is then one of a process without power.
package privilege
