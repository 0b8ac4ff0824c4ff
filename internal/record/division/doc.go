// Package division divides the sites of a recording in windows. The probes of cold ones, which are
// hardly hit, stand between windows too, so that few go in and come out with each window. What is
// cold is known from windows, whose hits are counted by site; of sites beyond those that one window
// takes, from a trial. A cold site is hot from when it is hit often; a hot one that windows hardly
// come to turns cold.
package division
