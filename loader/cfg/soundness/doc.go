// Package soundness decides which routines can be traced, and makes the program of all.
//
// The graph of a routine may be right, and the routine yet be none that can be traced: it is
// entered in its middle, returns elsewhere, or shares its end with another. Checks with names look
// at one routine (routineChecks), at all of them (programChecks), and at how they enter each other
// (linkageChecks), in the order in which they stand in these lists: the first reason that a routine
// is given stays. Where a check needs another to have run, checkOrder says why, and a test holds
// the lists to it.
package soundness
