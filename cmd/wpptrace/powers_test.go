package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/cap"

	"wpptrace/compress/ops"
	"wpptrace/compress/sequitur"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/store"
	"wpptrace/internal/testenv"
)

// commandLines has arguments for each command that make it succeed; nil: it takes none. A recording
// needs one that succeeds without a file, too.
var commandLines = map[string][]string{
	"wpptrace": {"--", "/bin/true"},
	"bounds":   {"mine.wpp"},
	"check":    nil,
	"compact":  {"mine.wpp"},
	"compress": {"mine.u32", "--symbols", "-o", "made.wpp"},
	"context":  {"f", "mine.wpp"},
	"coverage": {"mine.wpp"},
	"residual": nil,
	"diff":     {"mine.wpp", "mine.wpp"},
	"dump":     {"mine.wpp"},
	"find":     {"f", "mine.wpp"},
	"hot":      {"mine.wpp"},
	"merge":    {"mine.wpp", "-o", "made.wpp"},
	"order":    {"f", "f", "mine.wpp"},
	"path":     {"f#0", "mine.wpp"},
	"plan":     {"/bin/true"},
	"profile":  {"--", "/bin/true"},
	"rules":    {"never f f", "mine.wpp"},
	"slice":    nil,
	"stat":     {"mine.wpp"},
	"step":     nil,
	"top":      nil,
	"values":   {"--", "/bin/true"},
	"watch":    nil,
}

// filesOf are the arguments and flags of commands that name a file: all that TestFilesAreTheUsers
// finds to do so. A new one belongs here when it is opened as the user: see privilege.AsUser.
var filesOf = []string{
	"bounds --against", "bounds --binary", "bounds 0",
	"compact --output", "compact 0", "compress --output", "compress 0", "context 1",
	"coverage --lcov", "coverage --output", "coverage 0", "diff 0", "diff 1",
	"dump 0", "find 1", "hot --cost", "hot --disasm --binary",
	"hot --lines", "hot 0", "merge --output", "merge 0", "order 2", "path 1",
	"plan --interesting", "plan --weights", "plan -p --interesting", "plan -p --weights", "plan 0",
	"profile --interesting", "profile --output", "profile --weights", "profile 1",
	"rules --file", "rules 1", "slice 0", "stat 0", "step 0",
	"top -p --output", "top -p --weights",
	"values --at 0", "values --output", "values --weights", "values 1", "watch 1",
	"wpptrace --follow-fork --output",
	"wpptrace --output", "wpptrace --raw", "wpptrace --weights", "wpptrace 1",
}

// A secret is a file that a user may not read, for one of some reasons.
type secret struct{ why, path string }

// A powered is wpptrace with all capabilities that root has here, by its file, and without any,
// both started by a user who has none.
type powered struct {
	t             *testing.T
	with, without string
	dir           string // everybody's
	secrets       []secret
}

const topSecret = "topsecret"

func newPowered(t *testing.T) *powered {
	t.Helper()
	p := &powered{t: t, with: copyProgram(t, "wpptrace"), without: copyProgram(t, "wpptrace"),
		dir: anybodysDir(t)}
	all := cap.GetProc() // a file with more cannot be run here
	must(t, all.ClearFlag(cap.Inheritable))
	must(t, all.SetFile(p.with))
	root := filepath.Dir(copyProgram(t, "any")) // readable all the way
	snapshot := func(path, routine string, mode os.FileMode) string {
		must(t, writeRoutine(path, routine))
		must(t, os.Chmod(path, mode))
		return path
	}
	snapshot(filepath.Join(p.dir, "mine.wpp"), "f", 0o644)
	must(t, os.WriteFile(filepath.Join(p.dir, "mine.u32"), make([]byte, 8), 0o644))
	closed := filepath.Join(root, "closed")
	must(t, os.Mkdir(closed, 0o700))
	readable := snapshot(filepath.Join(root, "readable.wpp"), topSecret, 0o644)
	unreadable := snapshot(filepath.Join(root, "secret.wpp"), topSecret, 0o700)
	inClosed := snapshot(filepath.Join(closed, "secret.wpp"), topSecret, 0o755)
	link := filepath.Join(p.dir, "link.wpp")
	must(t, os.Symlink(inClosed, link))
	other := exec.Command("sleep", "1000") // root's
	must(t, other.Start())
	t.Cleanup(func() { other.Process.Kill(); other.Wait() })
	p.secrets = []secret{
		{"unreadable", unreadable}, {"in a closed directory", inClosed}, {"a link", link},
		{"by way of another's process",
			fmt.Sprintf("/proc/%d/root%s", other.Process.Pid, readable)},
	}
	return p
}

// writeRoutine writes a snapshot in which one routine ran.
func writeRoutine(path, routine string) error {
	g := sequitur.New()
	g.Append(0)
	return store.WriteFile(path, &wpp.Snapshot{
		Images: []wpp.Image{{Name: "/bin/true", BuildID: []byte("x")}},
		Routines: []wpp.Routine{{Name: routine, Symbol: routine, Entry: 0x1000,
			Ranges: []wpp.Range{{Lo: 0x1000, Hi: 0x1001}}, Paths: 1,
			Blocks: []wpp.Block{{Addr: 0x1000, Lengths: []byte{1}, Line: 1, Last: 1}}}},
		Files:   []string{"secret.wpp", "link.wpp", "readable.wpp"}, // which --lines may be of
		Symbols: []wpp.Symbol{{Start: ops.StartEntry, End: ops.EndReturn, Blocks: []int{0}}},
		Threads: []wpp.Thread{{TID: 1, Grammar: wpp.FromSequitur(g), Ended: true}},
	})
}

// run runs one of the two programs as nobody, and returns all that it prints, and its exit status.
func (p *powered) run(program string, args ...string) string {
	p.t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = p.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobodyID,
		Gid: nobodyID}}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		p.t.Fatal(err)
	}
	if strings.Contains(string(out), topSecret) {
		p.t.Errorf("wpptrace %q gives the secret away:\n%s", args, out)
	}
	return fmt.Sprintf("%s%v", out, cmd.ProcessState)
}

const nobodyID = 65534

// denied are the secrets among those that a command refuses to open, given one in place of SECRET.
// same says that it has to print what it prints without capabilities.
func (p *powered) denied(same bool, args ...string) (n int) {
	p.t.Helper()
	for _, s := range p.secrets {
		line := slices.Clone(args)
		for i := range line {
			line[i] = strings.ReplaceAll(line[i], "SECRET", s.path)
		}
		got := p.run(p.with, line...)
		if same {
			if want := p.run(p.without, line...); got != want {
				p.t.Errorf("%s: wpptrace %q prints with capabilities\n%s\nand without\n%s", s.why,
					line, got, want)
			}
		}
		if strings.Contains(got, "permission denied") && strings.Contains(got, s.path) {
			n++
		} else if n == 0 {
			return 0 // it names no file
		}
	}
	return n
}

// TestFilesAreTheUsers: installed with capabilities by its file, every command opened what its user
// may not, for each argument and flag that names a file.
func TestFilesAreTheUsers(t *testing.T) {
	p := newPowered(t)
	before := p.state()
	var found []string
	try := func(name string, same bool, args ...string) {
		t.Helper()
		if p.denied(same, args...) > 0 {
			found = append(found, name)
		}
	}
	root := rootCommand()
	for _, c := range append(root.Commands(), root) {
		base, known := commandLines[c.Name()]
		if !known {
			t.Errorf("command %s is not in commandLines", c.Name())
			continue
		}
		// which takes capabilities
		records := c == root || c.Name() == "profile" || c.Name() == "values"
		before := []string{c.Name()}
		if c == root {
			before = nil
		}
		isOutput := func(i int) bool { return base[i] == "-o" || i > 0 && base[i-1] == "-o" }
		for i, arg := range base {
			if strings.HasPrefix(arg, "-") || isOutput(i) {
				continue
			}
			args := slices.Concat(before, base)
			args[len(before)+i] = "SECRET"
			try(fmt.Sprintf("%s %d", c.Name(), i), !records, args...)
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.NoOptDefVal != "" { // it takes no value
				return
			}
			args := slices.Concat(before, []string{"--" + f.Name, "SECRET"})
			for i, arg := range base {
				if f.Name != "output" || !isOutput(i) {
					args = append(args, arg)
				}
			}
			try(c.Name()+" --"+f.Name, !records, args...)
		})
	}
	// a process takes capabilities to be looked at
	other := testenv.Start(t, exec.Command(testenv.CompileC(t, seldom)))
	for _, flag := range []string{"--interesting", "--weights"} {
		try("plan -p "+flag, false, "plan", "-p", fmt.Sprint(other.PID()), flag, "SECRET")
	}
	for _, flag := range []string{"--output", "--weights"} {
		try("top -p "+flag, false, "top", "-d", "0.1", "-p", fmt.Sprint(other.PID()), flag,
			"SECRET")
	}
	try("hot --disasm --binary", true, "hot", "--disasm", "f", "--binary", "SECRET", "mine.wpp")
	try("wpptrace --follow-fork --output", false, "--follow-fork", "-o", "SECRET", "--",
		"/bin/true")
	try("slice 0", true, "slice", "--at", "f", "SECRET")
	try("step 0", true, "step", "SECRET")
	try("values --at 0", true, "values", "--at", "f", "SECRET")
	try("watch 1", true, "watch", "10", "SECRET")
	slices.Sort(found)
	if !slices.Equal(found, filesOf) {
		t.Errorf("these name files: %q,\nwant %q", found, filesOf)
	}
	if after := p.state(); after != before {
		t.Errorf("what is not the user's was\n%s\nand is\n%s", before, after)
	}
}

// state describes the files in directories that are not the user's.
func (p *powered) state() (all string) {
	for _, s := range p.secrets[:2] {
		dir := filepath.Dir(s.path)
		entries, err := os.ReadDir(dir)
		must(p.t, err)
		for _, e := range entries {
			var st unix.Stat_t
			must(p.t, unix.Lstat(filepath.Join(dir, e.Name()), &st))
			all += fmt.Sprintln(filepath.Join(dir, e.Name()), st.Ino, st.Mode, st.Size, st.Mtim)
		}
	}
	return all
}

// TestOutputIsTheUsers: with CAP_FOWNER, a recording replaced another user's file in a directory of
// the kind of /tmp. What it writes is the user's own.
func TestOutputIsTheUsers(t *testing.T) {
	p := newPowered(t)
	must(t, os.Chmod(p.dir, 0o777|os.ModeSticky))
	for _, name := range []string{"roots.wpp", "roots.raw"} {
		must(t, os.WriteFile(filepath.Join(p.dir, name), nil, 0o644))
	}
	for _, args := range [][]string{{"-o", "roots.wpp"}, {"-o", "x.wpp", "--raw", "roots.raw"}} {
		if got := p.run(p.with, append(args, "--", "/bin/true")...); !strings.Contains(got,
			"exit status 1") {
			t.Errorf("%q: %s", args, got)
		}
	}
	for _, name := range []string{"roots.wpp", "roots.raw"} {
		if info, err := os.Stat(filepath.Join(p.dir, name)); err != nil || info.Size() != 0 ||
			info.Sys().(*syscall.Stat_t).Uid != 0 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	got := p.run(p.with, "-q", "--raw", "own.raw", "-o", "own.wpp", "--", "/bin/true")
	for _, name := range []string{"own.wpp", "own.raw"} {
		if info, err := os.Stat(filepath.Join(p.dir, name)); err != nil || info.Size() == 0 ||
			info.Sys().(*syscall.Stat_t).Uid != nobodyID {
			t.Errorf("%s: %v, %v: %s", name, info, err, got)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(p.dir, ".*")); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
}
