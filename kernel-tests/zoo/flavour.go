package zoo

import (
	"os/exec"
	"slices"
	"strings"
)

// A Flavour is one way to compile a program.
type Flavour struct {
	Compiler string // "gcc", or "clang" where one is installed; the C++ compiler goes with it
	Opt      string // "-O0" to "-O3"
	PIE      bool
	Static   bool
	Stripped bool
	Shared   bool // all of it is a shared library, but for a main that calls the program's
	// Sorting leaves it to a static executable that is not PIE to register its unwind tables and to
	// sort them at the first exception, in millions of instructions. Without it the linker sorts
	// them, as for all other executables: the start-up code's weak references to what registers
	// them, and undoes that, are renamed, and stay 0.
	Sorting bool
	Extra   string // one more compiler flag, or ""
}

// String names the flavour; it is good for file names.
func (f Flavour) String() string {
	name := f.Compiler + f.Opt
	for _, part := range []struct {
		on   bool
		text string
	}{{f.PIE, "-pie"}, {f.Static, "-static"}, {f.Stripped, "-stripped"}, {f.Shared, "-shared"},
		{f.Sorting, "-sorting"}, {f.Extra != "", f.Extra}} {
		if part.on {
			name += part.text
		}
	}
	return strings.ReplaceAll(name, "=", "-")
}

func (f Flavour) flags() []string {
	flags := []string{f.Opt, "-pthread", "-w"}
	switch {
	case f.Shared:
		flags = append(flags, "-fPIC")
	case f.PIE && f.Static:
		flags = append(flags, "-fPIE", "-static-pie")
	case f.PIE:
		flags = append(flags, "-fPIE", "-pie")
	case f.Static:
		flags = append(flags, "-fno-pie", "-static")
		if !f.Sorting {
			flags = append(flags,
				"-Wl,--eh-frame-hdr,--wrap=__register_frame_info,--wrap=__deregister_frame_info")
		}
	default:
		flags = append(flags, "-fno-pie", "-no-pie")
	}
	if f.Stripped {
		flags = append(flags, "-s")
	}
	if f.Extra != "" {
		flags = append(flags, f.Extra)
	}
	return flags
}

// optimisations and extras are the factors of the matrix that have more than two values.
func optimisations() []string { return []string{"-O0", "-O1", "-O2", "-O3"} }

func extras() []string {
	return []string{"", "-g", "-fcf-protection=full", "-fno-omit-frame-pointer",
		"-fomit-frame-pointer", "-fno-plt", "-ffunction-sections"}
}

// Compilers lists the compilers that are installed: gcc, and clang under its plain name or the
// highest version's.
func Compilers() []string {
	compilers := []string{"gcc"}
	if _, err := clang(); err == nil {
		compilers = append(compilers, "clang")
	}
	return compilers
}

// clang finds the suffix of the clang to use: "" or "-19".
func clang() (suffix string, err error) {
	for _, suffix = range []string{"", "-21", "-20", "-19", "-18", "-17", "-16", "-15", "-14"} {
		if _, err = exec.LookPath("clang++" + suffix); err == nil {
			return suffix, nil
		}
	}
	return "", err
}

// Flavours is the whole matrix, in a fixed order: every compiler, optimisation, position
// dependence, linkage and symbol table, each without an extra flag, and the extra flags one by one
// with every compiler and optimisation.
func Flavours() []Flavour {
	var all []Flavour
	for _, compiler := range Compilers() {
		for _, opt := range optimisations() {
			for bits := range 8 {
				all = append(all, Flavour{Compiler: compiler, Opt: opt,
					PIE: bits&1 == 0, Static: bits&2 != 0, Stripped: bits&4 != 0})
			}
			for _, extra := range extras()[1:] {
				all = append(all, Flavour{Compiler: compiler, Opt: opt, PIE: true, Extra: extra})
			}
		}
	}
	return all
}

// Pairwise is a small part of the matrix, the same at every call, in which any two values of two
// different factors meet at least once.
func Pairwise() []Flavour {
	compilers, opts, extra := Compilers(), optimisations(), extras()
	sizes := []int{len(compilers), len(opts), 2, 2, 2, len(extra)}
	var flavours []Flavour
	for _, row := range pairwise(sizes) {
		flavours = append(flavours, Flavour{
			Compiler: compilers[row[0]],
			Opt:      opts[row[1]],
			PIE:      row[2] == 0,
			Static:   row[3] == 1,
			Stripped: row[4] == 1,
			Extra:    extra[row[5]],
		})
	}
	return flavours
}

// A Case is a program and a way to compile it.
type Case struct {
	Program Program
	Flavour Flavour
}

// Cases gives each program a flavour of the pairwise subset that it can be built in, in turn, so
// that the programs together use them all: a static one once, for the C library takes longer than
// any program.
func Cases() []Case {
	flavours := Pairwise()
	var cases []Case
	next := 0
	linked := map[Flavour]bool{} // statically, with some program
	for _, p := range Programs() {
		for range flavours {
			f := flavours[next%len(flavours)]
			next++
			if f.Static && (linked[f] || p.Has(NoStatic) || p.Has(Long)) ||
				f.Extra == "-fno-plt" && p.Has(Announced) || f.Compiler != "gcc" && p.Has(GNU) {
				continue
			}
			cases = append(cases, Case{p, f})
			if f.Static {
				linked[f] = true
			}
			break
		}
	}
	return cases
}

// A pair is a value of one factor with a value of a later one.
type pair struct{ f, v, g, w int }

// pairwise is a greedy covering array of strength two: each row takes the open pair that comes
// first, then gives every other factor the value that closes the most open pairs. Ties go round
// with the rows, so that no value is preferred.
func pairwise(sizes []int) [][]int {
	open := map[pair]bool{}
	var order []pair
	for f := range sizes {
		for g := f + 1; g < len(sizes); g++ {
			for v := range sizes[f] {
				for w := range sizes[g] {
					p := pair{f, v, g, w}
					open[p] = true
					order = append(order, p)
				}
			}
		}
	}
	var rows [][]int
	for _, first := range order {
		if !open[first] {
			continue
		}
		row := slices.Repeat([]int{-1}, len(sizes))
		row[first.f], row[first.g] = first.v, first.w
		for f := range row {
			if row[f] < 0 {
				row[f] = bestValue(row, f, sizes[f], len(rows), open)
			}
		}
		for f := range row {
			for g := f + 1; g < len(row); g++ {
				delete(open, pair{f, row[f], g, row[g]})
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// bestValue is the value of factor f that closes the most open pairs with the factors that have
// one; turn says where to begin.
func bestValue(row []int, f, size, turn int, open map[pair]bool) int {
	best, most := 0, -1
	for i := range size {
		v := (turn + i) % size
		n := 0
		for g, w := range row {
			if w < 0 || g == f {
				continue
			}
			p := pair{f, v, g, w}
			if g < f {
				p = pair{g, w, f, v}
			}
			if open[p] {
				n++
			}
		}
		if n > most {
			best, most = v, n
		}
	}
	return best
}
