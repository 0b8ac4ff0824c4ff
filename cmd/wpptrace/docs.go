//go:build docs

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"wpptrace/internal/manual"
)

func init() { taggedCommands = append(taggedCommands, docsCommand()) }

// docsCommand is of a build with the tag docs, so that what writes manual pages is in no wpptrace
// that is installed.
func docsCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "docs DIRECTORY",
		Short:   "Write manual pages and shell completions",
		Example: "  go run -tags docs ./cmd/wpptrace docs build",
		Hidden:  true,
		Args:    exactly(1, "a directory"),
		RunE: func(c *cobra.Command,
			args []string) error {
			return writeDocs(c.Root(), args[0])
		},
	}
}

func writeDocs(root *cobra.Command, dir string) error {
	pages := filepath.Join(dir, "man1")
	for _, d := range []string{pages, filepath.Join(dir, "completions")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	for _, shell := range []struct {
		file  string
		write func(path string) error
	}{
		{"wpptrace.bash",
			func(path string) error { return root.GenBashCompletionFileV2(path, true) }},
		{"_wpptrace", root.GenZshCompletionFile},
		{"wpptrace.fish",
			func(path string) error { return root.GenFishCompletionFile(path, true) }},
	} {
		if err := shell.write(filepath.Join(dir, "completions", shell.file)); err != nil {
			return fmt.Errorf("write completion: %w", err)
		}
	}
	return manual.WritePages(root, pages, "wpptrace "+strings.TrimSpace(release))
}
