package zoo

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"wpptrace/loader/target"
)

const busyScript = `
for i in {1..60}; do
	case $((i % 3)) in 0) x=a$((i * 2)) ;; 1) x=${x}b ;; *) x=${x/a/c} ;; esac
	words[i]=$x
	for ((n = i, steps = 0; n != 1; steps++)); do if ((n % 2)); then ((n = 3 * n + 1));
		else ((n /= 2)); fi; done
	((sum += steps))
done
echo $sum ${#words[@]} ${x:0:20}
`

const busyQuery = `
.mode quote
select value, value * 7919 % 1009, 'row ' || value from generate_series(1, 20000);
.mode json
select value, value * 7919 % 1009 as b, 'row ' || value as c from generate_series(1, 10000);
`

// Busy lists real programs with input that makes one to four million hits, for measurements.
func Busy() []Real {
	var numbers strings.Builder
	for i := range 12_000 {
		fmt.Fprintf(&numbers, "%d line %d of %d\n", i*37%101, i*7919%10007, i)
	}
	return []Real{
		{Name: "bash", Command: "bash", Package: "bash",
			Args: []string{"--norc", "--noprofile", "-c", busyScript}, Long: true},
		{Name: "gzip", Command: "gzip", Package: "gzip", Args: []string{"-6", "-n", "-c"},
			Stdin: numbers.String(), Long: true},
		{Name: "sqlite3", Command: "sqlite3", Package: "sqlite3", Args: []string{":memory:"},
			Stdin: busyQuery, Long: true},
	}
}

// Start starts a program with this input and stops it before its first instruction; its output is
// thrown away. It is for one goroutine at a time: the program has what are our standard files
// meanwhile.
func Start(argv []string, input string) (c *target.Child, err error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	stdin, err := os.CreateTemp("", "stdin")
	if err != nil {
		return nil, err
	}
	defer stdin.Close()
	if err := os.Remove(stdin.Name()); err != nil {
		return nil, err
	}
	_, err = stdin.WriteString(input)
	_, seek := stdin.Seek(0, io.SeekStart)
	if err := errors.Join(err, seek); err != nil {
		return nil, fmt.Errorf("write the input of %s: %w", argv[0], err)
	}
	defer func(in, out, err *os.File) { os.Stdin, os.Stdout, os.Stderr = in, out, err }(os.Stdin,
		os.Stdout, os.Stderr)
	os.Stdin, os.Stdout, os.Stderr = stdin, null, null
	return target.Start(argv)
}
