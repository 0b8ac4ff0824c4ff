package zoo

import (
	"fmt"
	"os/exec"
	"strings"
)

// A Real is a program that the distribution installs, with input that makes every run alike.
type Real struct {
	Name    string
	Command string // looked for in the directories of Env
	Package string // the Debian package that holds it
	Args    []string
	Stdin   string
	Long    bool // executes millions of instructions: too many for a truth of 200,000
}

// Path finds the program; its error says how to install it.
func (r Real) Path() (string, error) {
	for _, dir := range []string{"/usr/bin/", "/bin/"} {
		if path, err := exec.LookPath(dir + r.Command); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("find %s: not installed: apt-get install %s", r.Command, r.Package)
}

const script = `
for i in 1 2; do
	case $i in 1) x=a$((i * 2)) ;; *) x=${x}b ;; esac
done
echo ${x/a/c}
`

const query = `
create table t(a, b);
insert into t select value, value * 7919 % 101 from generate_series(1, 40);
select b % 5, count(*), sum(a) from t group by 1 order by 2;
`

// python hashes strings alike in every run where PYTHONHASHSEED says so, which -I would ignore.
const python = `
def f(n): return n if n < 2 else f(n - 1) + f(n - 2)
print(f(7), sorted([3, 1, 2]))
`

const lua = `
local list, names = {}, {}
for i = 1, 60 do
	list[i] = {key = i * 37 % 61, name = ("n%d"):format(i % 7)}
	names[list[i].name] = (names[list[i].name] or 0) + i
end
table.sort(list, function(a, b) return a.key < b.key end)
local function fold(f, x, n)
	for i = 1, n do x = f(x, list[i].key / 4) end
	return x
end
print(fold(function(x, y) return x + y end, 0, 60), names.n3, list[9].name)
`

// Lua is one whose tables do not depend on the time: later versions of it mix that into hashes.
func Lua() Real {
	return Real{Name: "lua", Command: "lua5.1", Package: "lua5.1", Args: []string{"-e", lua}}
}

// Reals lists the real programs.
func Reals() []Real {
	var numbers strings.Builder
	for i := range 80 {
		fmt.Fprintf(&numbers, "%d line\n", i*37%101)
	}
	return []Real{
		{Name: "bash", Command: "bash", Package: "bash",
			Args: []string{"--norc", "--noprofile", "-c", script}},
		{Name: "gzip", Command: "gzip", Package: "gzip", Args: []string{"-6", "-n", "-c"},
			Stdin: numbers.String()},
		{Name: "sed", Command: "sed", Package: "sed", Args: []string{"-n", `s/\([0-9]\)5/<\1>/gp`},
			Stdin: numbers.String()},
		{Name: "sort", Command: "sort", Package: "coreutils", Args: []string{"--parallel=1", "-S", "1M", "-n"},
			Stdin: numbers.String()},
		{Name: "python3", Command: "python3", Package: "python3",
			Args: []string{"-S", "-s", "-B", "-c", python}, Long: true},
		{Name: "sqlite3", Command: "sqlite3", Package: "sqlite3",
			Args: []string{":memory:", query}},
	}
}
