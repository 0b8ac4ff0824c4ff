// Package guard lets a process go on that was stopped so that nothing of its trace is lost. wpptrace does it when it has read what there was; should
// wpptrace die before, by kill -9 too, a process of its own does it, so that nobody stays stopped for ever.
package guard
