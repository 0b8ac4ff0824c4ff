// Package load asks a server without a pause and measures what its clients notice: how many answers
// there are, how long each takes, and for how long there is none.
//
// It promises that a hold-up is not missed: each connection is a closed loop, so that the longest
// gap between two answers of a connection is what held that client up, one that has not ended
// included. It knows neither servers nor tracing.
package load
