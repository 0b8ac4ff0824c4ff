package main

import (
	"errors"
	"strconv"
	"time"

	"github.com/spf13/pflag"
)

// values says what the value of a flag must be, by the name that help gives it; "" is that of
// switches.
var values = map[string]string{
	"":        "true or false",
	"BYTES":   "a number of bytes, as 65536, 64K or 64M",
	"COST":    "a cost, as 1000, or a share of all, as 5%, of 100% at most",
	"K":       "a whole number, as 2",
	"N":       "a whole number, as 10",
	"PATHS":   "a number of paths, as 3",
	"PERCENT": "a percentage, as 5 or 0.5",
	"PID":     "a process number: look for it with ps or pgrep",
	"TID":     "a thread number, as 4711",
	"TIME":    "a time, as 10, 10s or 2m",
	"WHAT":    "gap or stop",
	"X":       "a number, as 10 or 2.5",
}

// flagError makes a usage error of one in a flag. What the parser of a value says is meant for
// programmers, and left out.
func flagError(err error) error {
	var invalid *pflag.InvalidValueError
	var missing *pflag.ValueRequiredError
	switch {
	case errors.As(err, &invalid):
		f := invalid.GetFlag()
		kind, _ := pflag.UnquoteUsage(f)
		return usagef("%s %q is not %s", dashed(f), invalid.GetValue(), values[kind])
	case errors.As(err, &missing):
		f := missing.GetFlag()
		kind, _ := pflag.UnquoteUsage(f)
		return usagef("nothing follows %s: %s %s", dashed(f), dashed(f), kind)
	}
	return usageError{err}
}

// dashed is the shortest name of a flag on a command line.
func dashed(f *pflag.Flag) string {
	if f.Shorthand != "" {
		return "-" + f.Shorthand
	}
	return "--" + f.Name
}

// parseTime reads a time. Without a unit it is in seconds, as timeout(1) has it.
func parseTime(text string) (time.Duration, error) {
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		text += "s"
	}
	return time.ParseDuration(text)
}

// addTime adds a flag whose value is a time.
func addTime(f *pflag.FlagSet, to *time.Duration, name, letter, usage string) {
	f.FuncP(name, letter, usage, func(text string) (err error) {
		*to, err = parseTime(text)
		return err
	})
}
