package server

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

// big is a program of 230 MB, as large as those get that ship in one file.
var big = program{name: "big", needs: []string{"gcc:gcc", "objcopy:binutils"}, src: "big.c",
	build: func(ctx context.Context, src string) ([]string, error) {
		path, err := buildBig(ctx, src, bigUnits, bigRoutines)
		return []string{path}, err
	}}

const (
	bigSeeds    = 4    // that many units differ; the others are copies, with names of their own
	bigUnits    = 245  // of 0.94 MB of code and data each
	bigRoutines = 2000 // of a unit
)

// buildBig generates, compiles and links that many units, of so many routines each. It takes a
// minute; what it has made once stays in the user's cache, from which it may be deleted.
func buildBig(ctx context.Context, src string, units, routines int) (path string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	cache = filepath.Join(cache, "wpptrace-production")
	path = filepath.Join(cache, fmt.Sprintf("big-%d-%d", units, routines))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	dir := filepath.Dir(src)
	if err := compileUnits(ctx, dir, routines); err != nil {
		return "", err
	}
	objects, err := copyUnits(ctx, dir, units)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "units.h"), []byte(unitTable(units)),
		0o644); err != nil {
		return "", err
	}
	args := append([]string{"-O1", "-o", path + ".new", src}, objects...)
	if err := as(ctx, nil, dir, "gcc", args...); err != nil {
		return "", err
	}
	return path, os.Rename(path+".new", path)
}

// compileUnits makes the objects of the units that differ, all CPUs at work.
func compileUnits(ctx context.Context, dir string, routines int) error {
	return inParallel(bigSeeds, func(i int) error {
		c, err := write(dir, fmt.Sprintf("seed%d.c", i), []byte(unitSource(uint64(i), routines)))
		if err != nil {
			return err
		}
		return as(ctx, nil, dir, "gcc", "-O1", "-c", "-o", fmt.Sprintf("seed%d.o", i), c)
	})
}

// copyUnits makes the objects of all units: only their names differ.
func copyUnits(ctx context.Context, dir string, units int) (objects []string, err error) {
	for i := range units {
		objects = append(objects, fmt.Sprintf("unit%d.o", i))
	}
	return objects, inParallel(units, func(i int) error {
		return as(ctx, nil, dir, "objcopy", fmt.Sprintf("--prefix-symbols=u%d_", i),
			fmt.Sprintf("seed%d.o", i%bigSeeds), objects[i])
	})
}

func inParallel(n int, f func(int) error) error {
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		failed error
		slots  = make(chan struct{}, runtime.NumCPU())
	)
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			if err := f(i); err != nil {
				mu.Lock()
				failed = err
				mu.Unlock()
			}
			<-slots
		})
	}
	wg.Wait()
	return failed
}

// unitTable is what big.c includes.
func unitTable(units int) string {
	var declared, listed strings.Builder
	for i := range units {
		fmt.Fprintf(&declared, "long u%d_run(long, long);\n", i)
		fmt.Fprintf(&listed, "\tu%d_run,\n", i)
	}
	return fmt.Sprintf("%s#define UNITS %d\nstatic long (*const units[])(long, long) = {\n%s};\n",
		&declared, units, &listed)
}

// unitSource is a unit of C: routines with conditions, loops, switches and calls, which return
// whatever their arguments are, and run, which picks one.
func unitSource(seed uint64, routines int) string {
	r := rand.New(rand.NewPCG(seed, seed))
	var b strings.Builder
	b.WriteString("static long v[64];\n")
	for i := range routines {
		g := generator{r: r, out: &b, routine: i}
		fmt.Fprintf(&b, "__attribute__((noinline)) long f%d(long a, long b) {\n\tlong c = a ^ b;\n", i)
		for range 4 + r.IntN(6) {
			g.statement(1)
		}
		b.WriteString("\treturn a + b + c;\n}\n")
	}
	b.WriteString("static long (*const table[])(long, long) = {\n")
	for i := range routines {
		fmt.Fprintf(&b, "\tf%d,\n", i)
	}
	fmt.Fprintf(&b, "};\nlong run(long a, long b) { return table[(unsigned long)a %% %d](a, b); }\n",
		routines)
	return b.String()
}

// A generator writes statements of a routine.
type generator struct {
	r       *rand.Rand
	out     *strings.Builder
	routine int
	loops   int
}

func (g *generator) line(depth int, format string, args ...any) {
	fmt.Fprintf(g.out, "%s"+format+"\n", append([]any{strings.Repeat("\t", depth)}, args...)...)
}

func (g *generator) variable() string { return string("abc"[g.r.IntN(3)]) }

func (g *generator) statement(depth int) {
	const deepest = 4
	kind := g.r.IntN(8)
	if depth >= deepest {
		kind = 0
	}
	switch kind {
	case 3, 4:
		g.line(depth, "if (%s %s %s + %d) {", g.variable(), []string{"<", ">", "=="}[g.r.IntN(3)],
			g.variable(), g.r.IntN(100))
		g.statement(depth + 1)
		g.line(depth, "} else {")
		g.statement(depth + 1)
		g.line(depth, "}")
	case 5:
		i := g.loops
		g.loops++
		g.line(depth, "for (int i%d = 0; i%d < (%s & 3); i%d++) {", i, i, g.variable(), i)
		g.statement(depth + 1)
		g.line(depth, "}")
	case 6:
		g.line(depth, "switch (%s & 7) {", g.variable())
		for c := range 8 {
			g.line(depth, "case %d:", c)
			g.arithmetic(depth + 1)
			if g.r.IntN(4) > 0 {
				g.line(depth+1, "break;")
			}
		}
		g.line(depth, "}")
	case 7:
		if depth > 1 || g.routine == 0 { // once a level at most, and the levels are few
			g.arithmetic(depth)
			return
		}
		g.line(depth, "if ((%s & %d) == 0)", g.variable(), 1+g.r.IntN(3))
		g.line(depth+1, "%s += f%d(b, c);", g.variable(), g.r.IntN((g.routine+1)/2))
	default:
		g.arithmetic(depth)
	}
}

func (g *generator) arithmetic(depth int) {
	x, y := g.variable(), g.variable()
	switch g.r.IntN(5) {
	case 0:
		g.line(depth, "%s += %s * %d;", x, y, 3+g.r.IntN(1000))
	case 1:
		g.line(depth, "%s ^= %s >> %d;", x, y, 1+g.r.IntN(30))
	case 2:
		g.line(depth, "v[%d] += %s;", g.r.IntN(64), x)
	case 3:
		g.line(depth, "%s -= v[%s & 63];", x, y)
	default:
		g.line(depth, "%s = %s - %s + %d;", x, x, y, g.r.IntN(1000))
	}
}
