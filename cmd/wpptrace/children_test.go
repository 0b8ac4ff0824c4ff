package main

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"wpptrace/internal/testenv"
)

// begetter starts a process, a thread, or nothing.
const begetter = `
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
static char *volatile name;
__attribute__((noinline)) static char *get(void) { return name; }
static void *thread(void *arg) { return arg; }
int main(int c, char **v) {
	pthread_t t;
	for (int i = 0; i < 100; i++) get();
	switch (v[1][0]) {
	case 'p': if (!fork()) _exit(0); wait(0); break;
	case 't': pthread_create(&t, 0, thread, 0); pthread_join(t, 0); break;
	}
	return 0;
}`

// Processes that the target starts are not traced, but have copies of the probes: the recording
// says so, once.
func TestChildren(t *testing.T) {
	program := testenv.CompileC(t, begetter, "-O1", "-pthread")
	for child, want := range map[string]bool{"process": true, "thread": false, "none": false} {
		_, errs, status := wpptrace("-o", filepath.Join(t.TempDir(), "x.wpp"), "--", program, child)
		if got := strings.Contains(errs, " (prog) has started another, which is not recorded, "+
			"but slowed down while probes stand, for it has copies of them: --follow-fork "+
			"records it, too\n"); status != 0 || got != want {
			t.Errorf("%s: status %d, %s", child, status, errs)
		}
	}
}

// A selection whose hits are single-stepped is warned of.
func TestSelectionIsSlow(t *testing.T) {
	program := testenv.CompileC(t, begetter, "-O1", "-pthread")
	for selected, want := range map[string]bool{"^get$": true, "^main$": false} {
		_, errs, status := wpptrace("-F", selected, "-o", filepath.Join(t.TempDir(), "x.wpp"), "--",
			program, "none")
		const warning = "wpptrace: 100% of the expected hits are single-stepped, and slow, most " +
			"in get: -N leaves it out\n"
		if status != 0 || strings.Contains(errs, warning) != want {
			t.Errorf("-F %s: status %d, %s", selected, status, errs)
		}
	}
}

// TestChildrenFromBefore: --follow-fork of a process that had started others before. They were not
// followed, and nothing said so.
func TestChildrenFromBefore(t *testing.T) {
	s := testenv.StartSubject(t, exec.Command("bash", "-c",
		`sleep 60 & sleep 60 & while read; do echo; done; kill $(jobs -p); exit 7`))
	w := startTracer(t, "-p", strconv.Itoa(s.PID()), "--follow-fork", "-o", "x.wpp", "-d", "0.2")
	w.expect(" (bash) had started 2 others before (")
	w.wait(0)
	s.End()
}

// TestCommandIsKilled: a command that a signal ends says nothing itself, nor does a shell, for it
// is not its own. wpptrace said nothing, either.
func TestCommandIsKilled(t *testing.T) {
	for name, want := range map[string]string{
		"XFSZ": " (bash) was killed by SIGXFSZ: it wrote a larger file than ulimit -f allows\n",
		"SEGV": " (bash) was killed by SIGSEGV\n",
		"PIPE": "",
	} {
		signal := unix.SignalNum("SIG" + name)
		w := startTracer(t, "-o", "x.wpp", "--", "bash", "-c", "kill -"+name+" $$")
		w.wait(128 + int(signal))
		if errs := w.errs.String(); !strings.Contains(errs, want) ||
			want == "" && strings.Contains(errs, "killed by") {
			t.Errorf("%s: %s", name, errs)
		}
	}
}

// TestFileSizeLimit: the snapshot is larger than ulimit -f allows. That is an error that says so,
// and no death by SIGXFSZ.
func TestFileSizeLimit(t *testing.T) {
	const script = `ulimit -f 1; exec wpptrace -q -o x.wpp -- bash -c 'for ((i = 0; i < 30; i++)); do :; done'`
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir = t.TempDir()
	w := runTracer(t, cmd)
	w.wait(1)
	const want = "wpptrace: write snapshot x.wpp: file too large: allow larger files with ulimit -f"
	if errs := w.errs.String(); !strings.Contains(errs, want) {
		t.Errorf("%s", errs)
	}
}
