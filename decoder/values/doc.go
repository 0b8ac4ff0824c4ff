// Package values makes of what hits have seen the values of all instructions between them, and
// keeps what the model of memory mispredicts.
package values
