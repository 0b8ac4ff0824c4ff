package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"wpptrace/compress/wpp/store"
	"wpptrace/internal/remedy"
	"wpptrace/loader/target"
)

// Each kind of remedy has its text.
func TestRemediesAreComplete(t *testing.T) {
	for kind, text := range remedies {
		if kind > 0 && text == "" {
			t.Errorf("remedy %d has no text", kind)
		}
	}
}

// A remedy stands behind the error that it is for, wherever that is in another's text.
func TestErrorText(t *testing.T) {
	write := func(why error) error {
		return remedy.Errorf(remedy.OtherSnapshot, "write snapshot x.wpp: %w", why)
	}
	for want, err := range map[string]error{
		"plain": errors.New("plain"),
		"a: write snapshot x.wpp: file exists: name another file with -o": fmt.Errorf("a: %w",
			write(unix.EEXIST)),
		"write snapshot x.wpp: no space left on device: free some space there, or name another " +
			"file with -o; what was recorded before is in .x.wpp.1": &store.KeptError{
			Err: write(unix.ENOSPC), File: ".x.wpp.1"},
		"write snapshot x.wpp: file too large: allow larger files with ulimit -f, or name " +
			"another file with -o": write(unix.EFBIG),
		"open process 8: it is a thread of process 7: -p 7 --tid 8 records it alone": fmt.Errorf(
			"open process 8: %w", &target.ThreadError{PID: 7, TID: 8}),
	} {
		if got := errorText(err); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// othersFlags are flags of other programs in texts.
var othersFlags = regexp.MustCompile(`ulimit -[fn]|with -o allow_other|docker run --pid=host|` +
	`link it without -N \(--omagic\)`)

// TestEngineNamesNoFlags: others call the loader and the recording engine too, who have no flags.
func TestEngineNamesNoFlags(t *testing.T) {
	var names []string
	note := func(f *pflag.Flag) {
		names = append(names, "--"+f.Name)
		if f.Shorthand != "" {
			names = append(names, "-"+f.Shorthand)
		}
	}
	var each func(c *cobra.Command)
	each = func(c *cobra.Command) {
		c.Flags().VisitAll(note)
		for _, sub := range c.Commands() {
			each(sub)
		}
	}
	each(rootCommand())
	flag := regexp.MustCompile(`(^|[\s"'(\[])(` + strings.Join(names, "|") + `)($|[^\w-])`)
	walk := func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" ||
			strings.HasSuffix(path, "_test.go") {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			if flag.MatchString(othersFlags.ReplaceAllString(text, "")) {
				t.Errorf("%v: %q names a flag: mark the error with a remedy, and name it in "+
					"remedies.go", files.Position(literal.Pos()), text)
			}
			return true
		})
		return nil
	}
	for _, dir := range []string{"../../internal/record", "../../loader"} {
		must(t, filepath.WalkDir(dir, walk))
	}
}
