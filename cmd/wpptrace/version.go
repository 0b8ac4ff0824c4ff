package main

import (
	_ "embed"
	"fmt"
	"runtime/debug"
	"strings"
)

// release is the version of this program, of which the package is made, too.
//
//go:embed VERSION
var release string

// version is that of this program.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return versionOf(strings.TrimSpace(release), info)
}

// versionOf is a release with the revision that was built, which is not known of sources without
// their repository.
func versionOf(release string, info *debug.BuildInfo) string {
	revision, changes := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			changes = ", changed"
		}
	}
	if revision == "" {
		return release
	}
	return fmt.Sprintf("%s (%s%s)", release, revision, changes)
}
