// Command production measures what wpptrace -p does to real servers at work, and how much of them
// it sees: make production installs them and measures all.
//
// Each server is loaded without a pause by clients on the same machine. The load is measured while
// the server is left alone and while wpptrace traces it, in turns; then it is traced once while
// perf samples it, once in full, however slow, and once while bpftrace counts the entries of ten of
// its routines. A table and a JSON object for each run say what came out. Package server starts
// them, package load asks them and measures what clients notice.
//
// It runs as root, on a machine that does nothing else: with two CPUs, one is the clients'.
package main
