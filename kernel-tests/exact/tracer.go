package exact

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"

	"wpptrace/internal/pathcount"
	"wpptrace/kernel-tests/truth"
	"wpptrace/query"
)

// ErrRefused is the error of a target that wpptrace does not record; what it says comes with it.
var ErrRefused = errors.New("no snapshot")

// A Tracer is a wpptrace executable. It may be used concurrently.
type Tracer struct{ path string }

// Build compiles wpptrace into dir. It takes as long as the go command needs.
func Build(ctx context.Context, dir string) (*Tracer, error) {
	path := filepath.Join(dir, "wpptrace")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", path,
		"wpptrace/cmd/wpptrace").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("build wpptrace: %w\n%s", err, out)
	}
	return NewTracer(path), nil
}

// NewTracer uses an executable that was built before.
func NewTracer(path string) *Tracer { return &Tracer{path} }

// Path is the executable's.
func (w *Tracer) Path() string { return w.path }

// A Target is a program and all that its execution depends on.
type Target struct {
	Path  string
	Args  []string
	Env   []string
	Dir   string // "": the current directory
	Stdin []byte
	// FixedAddresses turns address randomisation off, in every run.
	FixedAddresses bool
	// Libraries are the base names of shared libraries that are traced as well.
	Libraries []string
}

// An Outcome is what others see of a run.
type Outcome struct {
	Stdout, Stderr []byte
	// the exit status as a shell has it: 128 and the number of the signal that ended the program
	Exit int
}

// A Record is what wpptrace says of one run.
type Record struct {
	Streams  []*truth.Stream
	Routines truth.Routines
	Stat     query.Stat
}

// Run runs the target without a tracer.
func (t Target) Run(ctx context.Context) (Outcome, error) { return t.run(ctx) }

// Record runs the target under `wpptrace -- CMD` with further flags. The target's files are the
// tracer's: with -q it writes nothing to them.
func (w *Tracer) Record(ctx context.Context, t Target, flags ...string) (*Record, Outcome, error) {
	dir, err := os.MkdirTemp("", "exact")
	if err != nil {
		return nil, Outcome{}, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "run.wpp")
	outcome, err := w.RecordTo(ctx, file, t, flags...)
	if err != nil {
		return nil, outcome, err
	}
	r, err := w.Read(ctx, file, t.Libraries...)
	return r, outcome, err
}

// RecordTo is Record, but that it leaves the snapshot in file and does not read it.
func (w *Tracer) RecordTo(ctx context.Context, file string, t Target,
	flags ...string) (Outcome, error) {
	return w.recordBy(ctx, []string{w.path}, file, t, flags...)
}

// CountTo counts how often the paths of the target run, under `wpptrace profile -- CMD` with further
// flags, and leaves the path profile in file.
func (w *Tracer) CountTo(ctx context.Context, file string, t Target,
	flags ...string) (Outcome, error) {
	return w.recordBy(ctx, []string{w.path, "profile"}, file, t, flags...)
}

// A ValueRecord is what wpptrace says of the values of one run.
type ValueRecord struct {
	Streams  []*truth.ValueStream
	Routines truth.Routines
}

// Values runs the target under `wpptrace values -- CMD` with further flags. Of the values, no more
// than most instructions are read; 0: all.
func (w *Tracer) Values(ctx context.Context, t Target, most int,
	flags ...string) (*ValueRecord, error) {
	dir, err := os.MkdirTemp("", "exact")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "run.wpp")
	if _, err := w.ValuesTo(ctx, file, t, flags...); err != nil {
		return nil, err
	}
	return w.ReadValues(ctx, file, most, t.Libraries...)
}

// ValuesTo is Values, but that it leaves the snapshot in file and does not read it.
func (w *Tracer) ValuesTo(ctx context.Context, file string, t Target,
	flags ...string) (Outcome, error) {
	return w.recordBy(ctx, []string{w.path, "values"}, file, t, flags...)
}

// ReadValues reads the values of a snapshot: no more than most instructions; 0: all.
func (w *Tracer) ReadValues(ctx context.Context, file string, most int,
	libraries ...string) (*ValueRecord, error) {
	text, err := w.head(ctx, most, "dump", "--as", "values", "--all", file)
	if err != nil {
		return nil, err
	}
	r := &ValueRecord{}
	if r.Streams, err = truth.ParseValues(text, "", libraries...); err != nil {
		return nil, err
	}
	routines, err := w.output(ctx, "stat", "--routines", file)
	if err != nil {
		return nil, err
	}
	r.Routines, err = truth.ParseRoutines(bytes.NewReader(routines), "", libraries...)
	return r, err
}

// CountSome counts how often paths of the target run that a snapshot has recorded, under `wpptrace
// profile --interesting FILE -- CMD` with further flags.
func (w *Tracer) CountSome(ctx context.Context, file string, t Target,
	flags ...string) (*pathcount.Result, error) {
	command := append([]string{w.path, "profile", "-q", "--json", "--interesting", file}, flags...)
	outcome, err := t.run(ctx, append(command, "--")...)
	if err != nil {
		return nil, err
	}
	at := bytes.LastIndex(outcome.Stderr, []byte(`{"schema_version"`))
	if at < 0 {
		return nil, fmt.Errorf("count paths of %s: %w: %s", t.Path, ErrRefused, outcome.Stderr)
	}
	r := &pathcount.Result{}
	if err := json.NewDecoder(bytes.NewReader(outcome.Stderr[at:])).Decode(r); err != nil {
		return nil, fmt.Errorf("count paths of %s: %w", t.Path, err)
	}
	return r, nil
}

func (w *Tracer) recordBy(ctx context.Context, command []string, file string, t Target,
	flags ...string) (Outcome, error) {
	command = append(append(command, "-q", "-o", file), flags...)
	for _, name := range t.Libraries {
		command = append(command, "--lib", name)
	}
	outcome, err := t.run(ctx, append(command, "--")...)
	if err != nil {
		return outcome, err
	}
	if _, err := os.Stat(file); err != nil {
		return outcome, fmt.Errorf("record %s: %w: %s", t.Path, ErrRefused, outcome.Stderr)
	}
	outcome.Stderr = copiesStay.ReplaceAll(outcome.Stderr, nil)
	return outcome, nil
}

// copiesStay is what wpptrace, and not the target, says even with -q if it looks while a process
// lives that was forked: on a busy machine one lives for longer.
var copiesStay = regexp.MustCompile(
	`(?m)^wpptrace: what process \d+ \(.*\) forks is slowed down, too, until probes go out, .*\n`)

// Follow runs the target under `wpptrace --follow-fork -- CMD`, and returns what came of each
// program, of the target itself first.
func (w *Tracer) Follow(ctx context.Context, t Target) ([]*Record, Outcome, error) {
	dir, err := os.MkdirTemp("", "exact")
	if err != nil {
		return nil, Outcome{}, err
	}
	defer os.RemoveAll(dir)
	first := filepath.Join(dir, "run.wpp")
	outcome, err := t.run(ctx, w.path, "-q", "--follow-fork", "-o", first, "--")
	if err != nil {
		return nil, outcome, err
	}
	others, err := filepath.Glob(filepath.Join(dir, "run.*.wpp"))
	if err != nil {
		return nil, outcome, err
	}
	var records []*Record
	for _, file := range append([]string{first}, others...) {
		r, err := w.Read(ctx, file)
		if err != nil {
			return nil, outcome, err
		}
		records = append(records, r)
	}
	return records, outcome, nil
}

// Read reads a snapshot through wpptrace's commands. Addresses of the libraries are as truth.Placed
// has them.
func (w *Tracer) Read(ctx context.Context, file string, libraries ...string) (*Record, error) {
	r := &Record{}
	insns, err := w.output(ctx, "dump", "--as", "insns", file)
	if err != nil {
		return nil, err
	}
	if r.Streams, err = truth.ParseInsns(bytes.NewReader(insns), "", libraries...); err != nil {
		return nil, err
	}
	routines, err := w.output(ctx, "stat", "--routines", file)
	if err != nil {
		return nil, err
	}
	if r.Routines, err = truth.ParseRoutines(bytes.NewReader(routines), "",
		libraries...); err != nil {
		return nil, err
	}
	if r.Stat, err = w.Stat(ctx, file); err != nil {
		return nil, err
	}
	return r, nil
}

// Stat reads the figures of a snapshot.
func (w *Tracer) Stat(ctx context.Context, file string) (query.Stat, error) {
	var s query.Stat
	out, err := w.output(ctx, "stat", "--json", file)
	if err == nil {
		err = json.Unmarshal(out, &s)
	}
	if err != nil {
		return s, fmt.Errorf("read the figures of %s: %w", file, err)
	}
	return s, nil
}

// A Plan is what `wpptrace plan --json` says of how much would be traced.
type Plan struct {
	Total  int `json:"routines_total"`
	Traced int `json:"routines_observed"`
}

// Share is the traced part, from 0 to 1.
func (p Plan) Share() float64 { return float64(p.Traced) / float64(max(p.Total, 1)) }

// Plan asks for the plan of a file.
func (w *Tracer) Plan(ctx context.Context, path string, flags ...string) (Plan, error) {
	var p Plan
	out, err := w.output(ctx, append([]string{"plan", "--json", path}, flags...)...)
	if err == nil {
		err = json.Unmarshal(out, &p)
	}
	if err != nil {
		return p, fmt.Errorf("plan %s: %w", path, err)
	}
	return p, nil
}

func (w *Tracer) output(ctx context.Context, args ...string) ([]byte, error) {
	out, err := exec.CommandContext(ctx, w.path, args...).Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil, fmt.Errorf("wpptrace %s: %w: %s", args[0], err, exit.Stderr)
	}
	return out, err
}

// head is the first lines that a command prints, or all: 0.
func (w *Tracer) head(ctx context.Context, lines int, args ...string) (io.Reader, error) {
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	cmd := exec.CommandContext(ctx, w.path, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	text, reader := &bytes.Buffer{}, bufio.NewReader(out)
	for n := 0; lines == 0 || n < lines; n++ {
		line, err := reader.ReadSlice('\n')
		if text.Write(line); errors.Is(err, io.EOF) {
			if err := cmd.Wait(); err != nil {
				return nil, fmt.Errorf("wpptrace %s: %w: %s", args[0], err, &stderr)
			}
			return text, nil
		}
		if err != nil {
			return nil, err
		}
	}
	enough()
	_ = cmd.Wait() // it has been killed
	return text, nil
}

// run runs the target behind a prefix command. Every run passes through setarch or none does, so
// that the environment is the same in all.
func (t Target) run(ctx context.Context, prefix ...string) (Outcome, error) {
	argv := append(append(prefix, t.Path), t.Args...)
	if t.FixedAddresses {
		argv = append([]string{"setarch", "--addr-no-randomize"}, argv...)
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.Dir, cmd.Stdin = t.Env, t.Dir, bytes.NewReader(t.Stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return Outcome{}, fmt.Errorf("run %s: %w", argv[0], err)
	}
	o := Outcome{Stdout: stdout.Bytes(), Stderr: stderr.Bytes(), Exit: cmd.ProcessState.ExitCode()}
	if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signaled() {
		o.Exit = 128 + int(ws.Signal())
	}
	return o, ctx.Err()
}
