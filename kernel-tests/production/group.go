package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// makeGroup makes a control group that allows that many megabytes of memory, and returns its
// directory, which is the caller's to remove.
func makeGroup(megabytes int) (dir string, err error) {
	for _, g := range []struct{ parent, limit string }{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}, // version 1
		{"/sys/fs/cgroup", "memory.max"},
	} {
		if dir, err = makeGroupIn(g.parent, g.limit, megabytes<<20); err == nil {
			return dir, nil
		}
	}
	return "", err
}

func makeGroupIn(parent, limit string, bytes int) (string, error) {
	dir := filepath.Join(parent, fmt.Sprintf("wpptrace-production-%d", os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", fmt.Errorf("make a control group: %w", err)
	}
	err := os.WriteFile(filepath.Join(dir, limit), []byte(strconv.Itoa(bytes)), 0o644)
	if err != nil {
		return "", fmt.Errorf("limit a control group's memory: %w", errors.Join(err,
			os.Remove(dir)))
	}
	return dir, nil
}

// inGroup is a command that runs another one in a group.
func inGroup(group string, command ...string) []string {
	if group == "" {
		return command
	}
	return append([]string{"/bin/sh", "-c", `echo $$ > "$0/cgroup.procs" && exec "$@"`, group},
		command...)
}
