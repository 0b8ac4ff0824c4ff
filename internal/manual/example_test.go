package manual_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"wpptrace/internal/manual"
)

// A program with one command besides its own.
func ExampleWritePages() {
	nothing := func(*cobra.Command, []string) {}
	root := &cobra.Command{Use: "count FILE", Short: "Count lines", Run: nothing,
		Long: "Of each FILE.\nExit status: 0; 1 on an error."}
	root.Flags().Int("most", 7, "stop at `N` lines")
	root.AddCommand(&cobra.Command{Use: "words", Short: "Count words", Run: nothing})
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := manual.WritePages(root, dir, "count 1.0"); err != nil {
		log.Fatal(err)
	}
	pages, _ := filepath.Glob(filepath.Join(dir, "*.1"))
	for _, page := range pages {
		fmt.Println(filepath.Base(page))
	}
	page, err := os.ReadFile(filepath.Join(dir, "count.1"))
	if err != nil {
		log.Fatal(err)
	}
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, ".SH") || strings.Contains(line, "most") {
			fmt.Print(line)
		}
	}
	// Output:
	// count-words.1
	// count.1
	// .SH NAME
	// .SH SYNOPSIS
	// .SH DESCRIPTION
	// .SH COMMANDS
	// .SH OPTIONS
	// \fB--most\fP \fIN\fP
	// .SH EXIT STATUS
	// .SH SEE ALSO
}
