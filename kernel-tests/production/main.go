package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"wpptrace/kernel-tests/production/server"
)

// options are what the command line says.
type options struct {
	servers []server.Server
	runs    int
	seconds int
	compare bool
	counts  int // times that counts are compared with bpftrace's
	tracer  string
	json    string
	table   string // a file of JSON objects to print instead
	memory  int    // MB; 0: no limit
	flags   []string
	group   string // a directory: the control group that wpptrace runs in; "": this one's
}

func (o *options) duration() time.Duration { return time.Duration(o.seconds) * time.Second }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM,
		syscall.SIGHUP)
	defer stop()
	o, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	switch {
	case err != nil:
	case o.table != "":
		err = printTable(o.table, os.Stdout)
	default:
		err = all(ctx, o, os.Stdout, os.Stderr)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "production:", err)
		os.Exit(1)
	}
}

const usage = `Measure what wpptrace -p does to real servers at work, and what it sees, as root

Usage: production [FLAG...] [-- FLAG-OF-WPPTRACE...]

`

// parse reads the command line.
func parse(args []string, errs io.Writer) (*options, error) {
	o := &options{}
	var names []string
	for _, s := range server.All() {
		names = append(names, s.Name())
	}
	f := flag.NewFlagSet("production", flag.ContinueOnError)
	f.SetOutput(errs)
	f.Usage = func() {
		fmt.Fprint(errs, usage)
		f.PrintDefaults()
	}
	chosen := f.String("servers", strings.Join(names, ","), "measure these `servers`")
	f.IntVar(&o.runs, "runs", 5, "trace each this `many` times")
	f.IntVar(&o.seconds, "seconds", 10, "trace for this many `seconds`")
	f.BoolVar(&o.compare, "compare", true,
		"trace once more, beside perf and bpftrace, and compare with what they say")
	f.IntVar(&o.counts, "counts", -1,
		"compare counts with bpftrace's this `many` times (default: once with -compare)")
	f.StringVar(&o.tracer, "wpptrace", "", "measure this `program` (default: it is built)")
	f.StringVar(&o.json, "json", "", "append a JSON object for each run to this `file`")
	f.StringVar(&o.table, "table", "",
		"measure nothing, but print the table of the objects in this `file`")
	f.IntVar(&o.memory, "memory", 0,
		"trace in a control group that allows this many `megabytes` (default: no limit)")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	o.flags = f.Args()
	if o.counts < 0 {
		o.counts = 0
		if o.compare {
			o.counts = 1
		}
	}
	if o.runs < 0 || o.seconds <= 0 || o.memory < 0 || o.runs == 0 && !o.compare {
		return nil, fmt.Errorf("measure %d runs of %d s: there is nothing to measure", o.runs,
			o.seconds)
	}
	var err error
	o.servers, err = server.Find(strings.Split(*chosen, ","))
	return o, err
}

// printTable prints the table of runs that were measured before.
func printTable(path string, out io.Writer) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	var runs []*run
	for in := json.NewDecoder(f); in.More(); {
		r := &run{}
		if err := in.Decode(r); err != nil {
			return fmt.Errorf("read runs of %s: %w", path, err)
		}
		runs = append(runs, r)
	}
	return errors.Join(writeTable(out, runs), writeMissed(out, runs))
}

// all measures all servers that are installed.
func all(ctx context.Context, o *options, out, errs io.Writer) error {
	if os.Getuid() != 0 {
		return errors.New("trace servers: this is not root: run it with sudo")
	}
	dir, err := os.MkdirTemp("", "production")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if o.tracer == "" {
		o.tracer = filepath.Join(dir, "wpptrace")
		if text, err := exec.CommandContext(ctx, "go", "build", "-o", o.tracer,
			"wpptrace/cmd/wpptrace").CombinedOutput(); err != nil {
			return fmt.Errorf("build wpptrace: %w: %s", err, text)
		}
	}
	if o.memory > 0 {
		if o.group, err = makeGroup(o.memory); err != nil {
			return err
		}
		defer os.Remove(o.group)
	}
	if missing := companions(); (o.compare || o.counts > 0) && len(missing) > 0 {
		return fmt.Errorf("compare with %s: not installed: install it, or say -compare=false",
			strings.Join(missing, " and "))
	}
	results := io.Discard
	if o.json != "" {
		f, err := os.OpenFile(o.json, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		defer f.Close()
		results = f
	}
	var runs []*run
	var failed error
	for _, s := range o.servers {
		if err := server.Missing(s); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		fmt.Fprintf(errs, "%s\n", s.Name())
		err := measure(ctx, o, s, func(r *run) {
			runs = append(runs, r)
			failed = errors.Join(failed, json.NewEncoder(results).Encode(r))
			failed = errors.Join(failed, writeDetails(errs, []*run{r}))
		})
		failed = errors.Join(failed, err)
		if ctx.Err() != nil {
			break
		}
	}
	if len(runs) > 0 {
		failed = errors.Join(failed, writeTable(out, runs), writeMissed(out, runs))
	}
	return failed
}
