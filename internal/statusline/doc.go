// Package statusline shows a live line on a terminal, which messages do not run into.
package statusline
