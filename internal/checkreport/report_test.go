package checkreport

import (
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"wpptrace/internal/testenv"
	"wpptrace/loader/requirement"
	"wpptrace/loader/target"
	"wpptrace/loader/uprobe"
)

// What is missing is printed with the fix, and nothing hides what comes after it.
func TestReport(t *testing.T) {
	r := New(error.Error)
	r.Add([]requirement.Requirement{
		{Name: "one", Find: func() (string, error) { return "fine", nil }, Fix: "never printed"},
		{Name: "two", Find: func() (string, error) { return "", errors.New("broken") },
			Fix: "mend it"},
		{Name: "three", Find: func() (string, error) { return "fine", nil }, Fix: ""},
		{Name: "four", Find: func() (string, error) { return "", requirement.ErrUnknown },
			Fix: "never printed"},
	}...)
	var out strings.Builder
	if err := r.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	const want = "ok       one              fine\nmissing  two              broken: mend it\nok  " +
		"     three            fine\n" +
		"unknown  four             not known without privileges: run wpptrace as root\n"
	if out.String() != want || r.OK {
		t.Errorf("%q, ok %v; want %q", out.String(), r.OK, want)
	}
}

// TestOfProcess: of a process that computes, the report says where its CPU time goes, what would be
// traced, and in how many windows; of one that sleeps, that there is no CPU time; of one that is in
// a library, how to trace that.
func TestOfProcess(t *testing.T) {
	elsewhere := testenv.CompileC(t, `
#include <string.h>
char text[1 << 16];
int main(void)
{
	memset(text, 'x', sizeof text - 1);
	for (volatile size_t n;;)
		n = strlen(text);
}`, "-O1", "-fno-builtin")
	for program, want := range map[string]string{
		"while :; do x=$(((x * 31 + 7) % 1000)); done": `(?s)^CPU time .* bash.*` +
			`plan \d+ of \d+ routines, \d+ probes .*, planned in \d.*` +
			`windows some \d+ a minute at --overhead 5, each of which holds it up for 20ms at most`,
		"read x": `(?s)^CPU time it has used none in 1s.*plan .*windows (not needed|not known)`,
		"exec " + elsewhere: `(?s)^CPU time .* libc\S* .*windows they would show next to nothing: ` +
			`\d\.\d% of its CPU time goes to what would be traced: --lib libc\S* traces that library`,
	} {
		cmd := exec.Command("bash", "-c", program)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
		p, err := target.Open(cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		time.Sleep(100 * time.Millisecond) // it begins
		var text strings.Builder
		for _, q := range OfProcess(p, 5, error.Error) {
			found, err := q.Find()
			fmt.Fprintln(&text, q.Name, found, err)
		}
		if !regexp.MustCompile(want).MatchString(text.String()) {
			t.Errorf("%s: %s", program, &text)
		}
	}
}

// What a kernel does without is printed with the version that has it.
func TestLimits(t *testing.T) {
	for mechanism, want := range map[uprobe.Mechanism][]string{
		uprobe.Events: {"no --overhead, plan --canary (it takes Linux 6.6 or later",
			"no --lib (it takes Linux 6.10 or later",
			"no --follow-fork (it takes Linux 6.10 or later"},
		uprobe.Link: {"no --lib (it takes Linux 6.10 or later",
			"no --follow-fork (it takes Linux 6.10 or later"},
		uprobe.ProcessLink: {"none"},
	} {
		got := Limits(mechanism)
		for _, text := range want {
			if !strings.Contains(got, text) || strings.Count(got, "no --") > len(want) {
				t.Errorf("%v: %s; want %s", mechanism, got, want)
			}
		}
	}
}
