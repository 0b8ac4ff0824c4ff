// Package privilege says with what power this process does something: files that its user names are
// opened as the user (Suspend, Take, AsUser), and what it needs no more is given up for good (Keep,
// Confine): a bug in what decodes and writes is then one of a process without power.
package privilege
