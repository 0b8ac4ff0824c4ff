package main

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"wpptrace/query"
)

// values says what the value of a flag must be, by the name that help gives it; "" is that of switches.
var values = map[string]string{
	"":        "true or false",
	"BYTES":   "a number of bytes, as 65536, 64K or 64M",
	"COST":    "a cost, as 1000, or a share of all, as 5%",
	"N":       "a whole number, as 10",
	"PATHS":   "a number of paths, as 3",
	"gap":     "gap or stop",
	"PERCENT": "a percentage, as 5 or 0.5",
	"PID":     "a process number: look for it with ps or pgrep",
	"TID":     "a thread number, as 4711",
	"TIME":    "a time, as 10, 10s or 2m",
	"X":       "a number, as 10 or 2.5",
}

// flagError makes a usage error of one in a flag. What the parser of a value says is meant for programmers, and left out.
func flagError(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return usageError{err}
	}
	f := invalid.GetFlag()
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand
	}
	kind, _ := pflag.UnquoteUsage(f)
	return usagef("%s %q is not %s", name, invalid.GetValue(), values[kind])
}

// parseTime reads a time. Without a unit it is in seconds, as timeout(1) has it.
func parseTime(text string) (time.Duration, error) {
	if n := len(text); n > 0 && '0' <= text[n-1] && text[n-1] <= '9' {
		text += "s"
	}
	return time.ParseDuration(text)
}

// setCost sets the least cost of a hot subpath: a number, or a share of the cost of all.
func setCost(q *query.HotQuery, text string) (err error) {
	q.MinCost, q.MinShare = 0, 0
	share, isShare := strings.CutSuffix(text, "%")
	if !isShare {
		q.MinCost, err = strconv.ParseUint(text, 10, 64)
		return err
	}
	percent, err := strconv.ParseFloat(share, 64)
	if err == nil && !(percent >= 0 && percent <= 100) {
		err = strconv.ErrRange
	}
	q.MinShare = percent / 100
	return err
}
