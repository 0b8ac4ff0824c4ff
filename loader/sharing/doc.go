// Package sharing knows which memory of a process others may write to: what several processes, or
// the process itself at several addresses, have mapped, files, which anybody may rewrite, and what
// the kernel writes for threads. What is read from there may have changed before the process reads
// it itself. It knows as well whether code has been rewritten.
package sharing
