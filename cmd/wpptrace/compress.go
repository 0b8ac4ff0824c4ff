package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"wpptrace/compress/ppcompress"
	"wpptrace/compress/raw"
	"wpptrace/compress/spill"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/store"
	"wpptrace/internal/memory"
	"wpptrace/loader/privilege"
)

func compressCommand() *cobra.Command {
	var symbols bool
	var output string
	limits := defaultMemory()
	c := &cobra.Command{
		Use:   "compress [--symbols] FILE -o SNAPSHOT",
		Short: "Make a snapshot of a raw trace of any tracer",
		Example: `  wpptrace compress x.raw -o x.wpp             what --raw x.raw has written
  tracer | wpptrace compress - -o x.wpp        while another tracer writes
  wpptrace compress --symbols x.u32 -o x.wpp   any numbers
  wpptrace dump --as symbols x.wpp > x.u32     and back`,
		Long: `docs/raw-trace.md says what other tracers have to write: the operations of Larus
1999, section 2, in bytes. FILE - is stdin. The trace is read once, from beginning to end, and need
not fit into memory. A trace that is cut off gives a snapshot of what there is, an error, and status
1.

Where --memory is too small for all that is recorded, segments of it are written to the snapshot's
file meanwhile. If wpptrace is killed then, .FILE.NUMBER has what was written, and all commands read
it.

Bare symbols are little-endian 32-bit numbers: symbol N is path N of a routine called "symbols". A
trace does not say what its paths consist of: a snapshot of it has names and numbers, but neither
instructions nor source lines.`,
		Args: exactly(1, "a raw trace"),
		RunE: func(c *cobra.Command, args []string) error {
			switch output {
			case "":
				return usagef("no snapshot to write: give -o FILE")
			case "-":
				return usagef("-o -: a snapshot is a file: name one")
			}
			var compress compression = ppcompress.Trace
			if symbols {
				compress = ppcompress.Symbols
			}
			if err := cmp.Or(limits.check(),
				limits.fit(memory.Allowed(), 1, c.Flags().Changed)); err != nil {
				return err
			}
			return compressFile(compress, args[0],
				spill.New(store.NewDraft(output), limits.process()), output, c.InOrStdin(),
				c.ErrOrStderr())
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "",
		"`FILE` for the snapshot; what was there becomes FILE.old")
	limits.add(c.Flags())
	c.Flags().BoolVar(&symbols, "symbols", false, "read bare symbols instead of a raw trace")
	return c
}

// A compression makes a snapshot of a trace.
type compression func(r io.Reader, image string, rec *spill.Recording) (*wpp.Snapshot, error)

// compressFile compresses the trace in a file, or on stdin. One that is cut off is an error, but
// not without a snapshot.
func compressFile(compress compression, path string, rec *spill.Recording, output string,
	stdin io.Reader, stderr io.Writer) error {
	if err := store.CheckOutput(output, privilege.CheckReplace); err != nil {
		return err
	}
	defer rec.Abandon()
	in, name := stdin, "stdin"
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("read trace: %w", err)
		}
		defer f.Close()
		in, name = f, filepath.Base(path)
	}
	s, cutOff := compress(in, name, rec)
	if cutOff != nil && !errors.Is(cutOff, raw.ErrTruncated) {
		return fmt.Errorf("compress %s: %w", path, cutOff)
	}
	s.Figures.Tool = version()
	if err := rec.Finish(context.Background(), s); err != nil {
		return store.WriteError(output, err)
	}
	st, err := os.Stat(output)
	if err != nil {
		return fmt.Errorf("look at snapshot: %w", err)
	}
	fmt.Fprintf(stderr, "wpptrace: snapshot: %s (%d bytes)\n", output, st.Size())
	if cutOff != nil {
		return fmt.Errorf("compress %s: %w: the snapshot has what comes before", path, cutOff)
	}
	return nil
}
