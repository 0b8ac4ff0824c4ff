package main

import (
	"cmp"
	"path"
	"regexp"
	"sync"

	"github.com/spf13/pflag"

	"wpptrace/internal/traced"
)

// selectionFlags say which routines are traced, and by what probes are chosen.
type selectionFlags struct {
	only, not []string // regular expressions
	complete  bool
	weights   string   // a snapshot
	libs      []string // globs

	compiled traced.Selection // by check
}

func (s *selectionFlags) add(f *pflag.FlagSet) {
	f.StringArrayVarP(&s.only, "func", "F", nil, "trace only routines whose demangled name "+
		"matches `REGEX` (repeatable)")
	f.StringArrayVarP(&s.not, "no-func", "N", nil, "do not trace routines whose demangled name "+
		"matches `REGEX` (repeatable)")
	f.StringVar(&s.weights, "weights", "", "choose probes by how often the blocks ran in "+
		"`SNAPSHOT`, a recording of the same program")
	f.StringArrayVar(&s.libs, "lib", nil, "trace shared libraries too whose base name, soname or "+
		"path matches `GLOB` (repeatable); -F and -N take LIBRARY:NAME for their routines")
	f.BoolVar(&s.complete, "complete", false, "trace routines too that need slow, single-stepped "+
		"probes")
}

// check finds expressions and globs that cannot be understood, and compiles the others.
func (s *selectionFlags) check() error {
	only, err := compile("-F", s.only)
	not, errNot := compile("-N", s.not)
	if err := cmp.Or(err, errNot); err != nil {
		return err
	}
	for _, glob := range s.libs {
		if _, err := path.Match(glob, ""); err != nil || glob == "" {
			return usagef("read --lib %q: not a glob: * stands for anything but /, ? for one "+
				"character, [a-z] for one of some", glob)
		}
	}
	s.compiled = traced.Selection{Only: only, Not: not, Complete: s.complete, Weights: s.weights,
		Libraries: s.libs}
	return nil
}

// behindLibrary is LIBRARY:^ but neither a class of characters, [:^alpha:], nor a name's colons.
var behindLibrary = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`([^\[:]):\^`)
})

func compile(flag string, expressions []string) (list []*regexp.Regexp, err error) {
	for _, text := range expressions {
		// ^ is where a name begins, behind a library's, too
		re, err := regexp.Compile(behindLibrary().ReplaceAllString(text, "$1:"))
		if err != nil {
			return nil, usagef("read %s %q: %w", flag, text, err)
		}
		list = append(list, re)
	}
	return list, nil
}
