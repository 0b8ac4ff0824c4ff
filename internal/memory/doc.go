// Package memory keeps this process within the memory that it is allowed: by its control group, by
// its user, and by what it does.
package memory
