package zoo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Repeatable lists the programs that can begin anew again and again in one process: they leave
// nothing behind that would keep them from it, and do not end the process.
func Repeatable() []Program {
	names := []string{
		"alloca", "avx", "beneath", "builtin_jump", "calculator", "callbacks", "computed_goto",
		"containers", "conventions", "coroutines", "exception_callbacks",
		"exception_loop", "exceptions", "floats", "ifunc", "jump_out", "lambdas", "leaves",
		"longjmp", "machine", "many_paths", "mutual", "realigned", "recursion",
		"rep", "setjmp_again", "signal_jump", "signals", "switch_char", "switch_dense",
		"switch_sparse", "switcher", "tailcalls", "threads", "virtuals",
	}
	return slices.DeleteFunc(Programs(),
		func(p Program) bool { return !slices.Contains(names, p.Name) })
}

const repeated = `#include <stdlib.h>
#define main once
#include "%s"
#undef main
int main(int argc, char **argv)
{
	for (int n = atoi(argv[1]); n > 0; n--)
		((int (*)(int, char **))once)(argc - 1, argv + 1);
	return 0;
}
`

// BuildRepeated compiles a repeatable program so that its first argument says how often it runs,
// for measurements: over one run of a few milliseconds the start of the process would outweigh all
// else.
func (b *Builder) BuildRepeated(ctx context.Context, p Program,
	f Flavour) (path string, err error) {
	source := fmt.Sprintf(repeated, p.File)
	p.Name, p.File = "repeated_"+p.Name, "repeated_"+p.File
	if err := os.WriteFile(filepath.Join(b.dir, "src", p.File), []byte(source), 0o644); err != nil {
		return "", fmt.Errorf("write the source of %s: %w", p.Name, err)
	}
	return b.Build(ctx, p, f)
}
