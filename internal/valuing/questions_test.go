package valuing_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"wpptrace/internal/valuing"
	"wpptrace/query/querytest"
)

// ask asks with flags and arguments, and returns the answer, or the error.
func ask(add func(*pflag.FlagSet), check func([]string) error,
	write func(*strings.Builder) error, line string) string {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	add(f)
	if err := f.Parse(strings.Fields(line)); err != nil {
		return err.Error()
	}
	if err := check(f.Args()); err != nil {
		return err.Error()
	}
	var text strings.Builder
	if err := write(&text); err != nil {
		return err.Error()
	}
	return text.String()
}

func TestSlice(t *testing.T) {
	for line, want := range map[string]string{
		"":                                 "--at says of which code",
		"--at f --data --control":          "--data leaves out what --control leaves: give one of them",
		"--at f --instance 0":              "--instance counts from 1",
		"--at f":                           "no routine f",
		"--at clip+0xb --data":             "what it depends on: 2 of 11 instructions",
		"--at clip+8 --control":            "what it depends on: 2 of 11 instructions",
		"--at clip --forward":              "what depends on it: 4 of 11 instructions",
		"--at clip --instance 1 --forward": "execution 1 of 2",
		"--at clip --tid 1":                "select thread 1: the snapshot has threads 4711",
		"--at clip+0xb":                    "AWAY   TIMES  LINE: VALUES",
		"--at clip+0xb --instructions":     "TIMES  WHERE, LINE: VALUES",
		"--at clip+0xb --json":             `"parts":[{"away":0,"times":1,"routine":"clip"`,
		"--at clip+0xb --csv":              "away,times,routine",
		"--at clip+0xb --csv --json":       "--json and --csv: give one of them",
	} {
		q := &valuing.Slice{}
		if got := ask(q.Add, q.Check, func(w *strings.Builder) error {
			return q.Write(w, querytest.Values())
		}, line); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

func TestWatch(t *testing.T) {
	for line, want := range map[string]string{
		"7000:0":          `"0" is no number of bytes from 1 to 4096`,
		"7000:x":          `"x" is no number of bytes from 1 to 4096`,
		"7000:5000":       `"5000" is no number of bytes from 1 to 4096`,
		"main:4":          `"main" is no address in hex`,
		"7000":            "2 accesses",
		"0x6fff:2":        "2 accesses",
		"--writes 6fff:1": "0 accesses",
		"--tid 1 7000":    "no thread 1",
		"--json 7000":     `"accesses":[{"thread":4711`,
		"--csv 7000":      "thread,position,routine",
		"--csv --json 1":  "--json and --csv: give one of them",
		"nobody":          "watch nobody: it is no ADDRESS[:SIZE] in hex, and: find variable nobody",
	} {
		q := &valuing.Watch{}
		if got := ask(q.Add, q.Check, func(w *strings.Builder) error {
			return q.Write(w, querytest.Values())
		}, line); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

func ExampleWatch() {
	q := &valuing.Watch{}
	if err := q.Check([]string{"7000:8"}); err != nil {
		fmt.Println(err)
	}
	var text strings.Builder
	if err := q.Write(&text, querytest.Values()); err != nil {
		fmt.Println(err)
	}
	fmt.Println(strings.Count(text.String(), "\n"), "lines")
	// Output: 4 lines
}
