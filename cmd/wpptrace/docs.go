//go:build docs

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
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
	root.DisableAutoGenTag = true
	for _, c := range append(root.Commands(), root) {
		c.Long = markdown(c.Long)
		c.Flags().VisitAll(flagMarkdown)
	}
	if err := doc.GenManTree(root,
		&doc.GenManHeader{Title: "WPPTRACE", Section: "1",
			Source: "wpptrace " + strings.TrimSpace(release)}, pages); err != nil {
		return fmt.Errorf("write manual pages: %w", err)
	}
	return nil
}

// markdown is plain text for cobra/doc: tables stay as they are, and signs stand for themselves.
func markdown(text string) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		if isTable(p) {
			paragraphs[i] = "```\n" + p + "\n```"
		} else {
			paragraphs[i] = escape(p)
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

// isTable reports whether lines of a paragraph have columns.
func isTable(paragraph string) bool {
	for line := range strings.Lines(paragraph) {
		if strings.Contains(strings.TrimRight(line, "\n"), "  ") {
			return true
		}
	}
	return false
}

// escape keeps signs from being taken for those of Markdown.
func escape(text string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "`", "\\`", "#", `\#`, "<", `\<`,
		"[", `\[`, "]", `\]`).Replace(text)
}

// flagMarkdown puts the name of a flag's value in place, which pflag marks by quotes.
func flagMarkdown(f *pflag.Flag) { f.Usage = escape(strings.ReplaceAll(f.Usage, "`", "")) }
