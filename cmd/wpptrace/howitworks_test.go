package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// docs/how-it-works.md shows what is printed today. Another compiler may lay out another routine.
func TestHowItWorks(t *testing.T) {
	text, err := os.ReadFile(root + "/docs/how-it-works.md")
	must(t, err)
	block := func(behind string) string {
		_, rest, _ := strings.Cut(string(text), behind)
		_, rest, _ = strings.Cut(rest, "```")
		_, rest, _ = strings.Cut(rest, "\n")
		inner, _, ok := strings.Cut(rest, "```")
		if !ok {
			t.Fatalf("no example behind %q", behind)
		}
		return inner
	}
	t.Chdir(t.TempDir())
	must(t, os.WriteFile("bits.c", []byte(block("## The routine")), 0o600))
	gcc := exec.Command("gcc", "-O1", "-g", "-fno-if-conversion", "-fno-if-conversion2", "-o",
		"bits", "bits.c")
	if out, err := gcc.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	plan, errs, status := wpptrace("plan", "--routine", "work", "bits")
	if status != 0 {
		t.Fatal(errs)
	}
	if !strings.Contains(plan, "6 blocks, 1 probe,") {
		if os.Getenv("CI") != "" {
			t.Fatalf("CI's compiler makes another routine than the document has:\n%s", plan)
		}
		t.Skipf("this compiler makes another routine:\n%s", plan)
	}
	addresses := regexp.MustCompile(`\b(0x)?1[0-9a-f]{3}\b`)
	if got, want := addresses.ReplaceAllString(plan,
		"A"), addresses.ReplaceAllString(block("## Its plan"), "A"); got != want {
		t.Errorf("it prints\n%s\nand the document has\n%s", got, want)
	}
	if _, errs, status := wpptrace("-q", "-o", "x.wpp", "--", "./bits"); status != 0 {
		t.Fatal(errs)
	}
	ops, errs, status := wpptrace("dump", "--as", "ops", "x.wpp")
	if status != 0 {
		t.Fatal(errs)
	}
	_, got, _ := strings.Cut(ops, "\n")
	if _, want, _ := strings.Cut(block("## The path that follows"), "\n"); got != want {
		t.Errorf("it recorded\n%s\nand the document has\n%s", got, want)
	}
}
