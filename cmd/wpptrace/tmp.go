package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"wpptrace/compress/wpp"
	"wpptrace/loader/attach"
	"wpptrace/loader/plan"
	"wpptrace/loader/target"
	"wpptrace/query"
)

func version() string { return "dev" }
func kernelRelease() string {
	var u unix.Utsname
	unix.Uname(&u)
	return unix.ByteSliceToString(u.Release[:])
}
func (r *recording) duration() time.Duration { return r.ended.Sub(r.began) }
func (r *recording) slowDown() float64       { return 0 }

func run(args []string, out, errs io.Writer) int {
	if args[0] == "dump" {
		s, err := wpp.ReadFile(args[1])
		if err == nil {
			err = query.Dump(out, s, query.Form(args[2]))
		}
		if err != nil {
			fmt.Fprintln(errs, err)
			return 1
		}
		return 0
	}
	if args[0] == "routines" {
		s, err := wpp.ReadFile(args[1])
		if err == nil {
			err = query.WriteRoutines(out, s)
		}
		if err != nil {
			fmt.Fprintln(errs, err)
			return 1
		}
		return 0
	}
	o := plan.Options{}
	if args[0] == "-c" {
		o.Complete = true
		args = args[1:]
	}
	if err := record(args[0], args[1:], o, errs); err != nil {
		fmt.Fprintln(errs, "wpptrace:", err)
		return 1
	}
	return 0
}

func record(file string, argv []string, o plan.Options, errs io.Writer) error {
	c, err := target.Start(argv)
	if err != nil {
		return err
	}
	f, err := c.Executable()
	if err != nil {
		return err
	}
	p, err := loadProgram(f, c.Name, o)
	if err != nil {
		c.Kill()
		return err
	}
	s, err := attach.Attach(c.Process, p.image, p.plan, attach.Options{})
	if err != nil {
		c.Kill()
		return err
	}
	defer s.Close()
	lvl := slog.LevelWarn
	if os.Getenv("V") != "" {
		lvl = slog.LevelDebug
	}
	r, err := newRecording(p, c.Process, s, nil, slog.New(slog.NewTextHandler(errs, &slog.HandlerOptions{Level: lvl})))
	if err != nil {
		return err
	}
	if err := s.Enable(true); err != nil {
		return err
	}
	c.Release()
	for done := false; !done; {
		if err := r.drain(time.Now().Add(20 * time.Millisecond)); err != nil {
			return err
		}
		select {
		case <-c.Done():
			done = true
		default:
		}
	}
	if err := r.finish(); err != nil {
		return err
	}
	sn, err := r.snapshot()
	if err != nil {
		return err
	}
	if err := wpp.WriteFile(file, sn); err != nil {
		return err
	}
	m, _ := s.Metrics()
	an, am := r.decoder.Anomalies()
	fmt.Fprintf(errs, "%+v\nanomalies %d ambiguous %d symbols %d hits %d stepped %d dur %v\n", m, an, am, r.alphabet.Len(), sn.Figures.Hits, sn.Figures.HitsSingleStep, r.duration())
	fmt.Fprintln(errs, r.lostLine())
	return nil
}
