// Package manual writes the manual pages of a program from the help of its commands.
//
// Tables in a help text, lines with two spaces in a row, stand in the page as the command prints
// them; a line "Exit status: " begins the section of that name.
package manual

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

// WritePages writes a page of section 1 for a program's root command, and for each command below it
// that is not hidden, into a directory that is there; that of "git add" is called git-add.1. source
// is the program with its version. The commands are good for nothing else then: their texts and
// flags are changed.
func WritePages(root *cobra.Command, dir, source string) error {
	root.DisableAutoGenTag = true
	for _, c := range append(root.Commands(), root) {
		if c != root && !c.IsAvailableCommand() {
			continue
		}
		if err := writePage(c, dir, source); err != nil {
			return fmt.Errorf("write manual page: %w", err)
		}
	}
	return nil
}

// writePage writes the manual page of a command. What cobra/doc would print of flags, their initial
// values, we print as --help does: the names of their values.
func writePage(c *cobra.Command, dir, source string) error {
	name := strings.ReplaceAll(c.CommandPath(), " ", "-")
	text, status, _ := strings.Cut(c.Long, "\nExit status: ")
	c.Long = markdown(text) + commandsMarkdown(c) + optionsMarkdown(c)
	if status != "" {
		c.Long += "\n\n# EXIT STATUS\n\n" + markdown(status)
	}
	f, err := os.Create(filepath.Join(dir, name+".1"))
	if err != nil {
		return err
	}
	header := &doc.GenManHeader{Title: strings.ToUpper(name), Section: "1", Source: source}
	return errors.Join(doc.GenMan(c, header, f), f.Close())
}

// commandsMarkdown lists the commands below one, and what each is for.
func commandsMarkdown(c *cobra.Command) string {
	if !c.HasAvailableSubCommands() {
		return ""
	}
	text := "\n\n# COMMANDS\n"
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			text += fmt.Sprintf("\n**%s**\n: %s\n", below.Name(), escape(below.Short))
		}
	}
	return text
}

// optionsMarkdown lists the flags of a command, and hides them from cobra/doc.
func optionsMarkdown(c *cobra.Command) string {
	c.InitDefaultHelpFlag()
	c.InitDefaultVersionFlag()
	text := "\n\n# OPTIONS\n"
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		f.Hidden = true
		value, usage := pflag.UnquoteUsage(f)
		name := "**--" + f.Name + "**"
		if f.Shorthand != "" {
			name = "**-" + f.Shorthand + "**, " + name
		}
		if value != "" {
			name += " *" + value + "*"
		}
		text += fmt.Sprintf("\n%s\n: %s%s\n", name, escape(usage), defaultText(f))
	})
	return text
}

// defaultText is what --help says of the value that a flag has if it is not given.
func defaultText(f *pflag.Flag) string {
	alone := pflag.NewFlagSet("", pflag.ContinueOnError)
	shown := *f
	shown.Hidden, shown.Usage = false, ""
	alone.AddFlag(&shown)
	if _, text, found := strings.Cut(alone.FlagUsages(), " (default "); found {
		return escape(" (default " + strings.TrimSpace(text))
	}
	return ""
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
