package manual

import "testing"

// Tables stay as they are; elsewhere signs stand for themselves.
func TestMarkdown(t *testing.T) {
	for text, want := range map[string]string{
		"Of *each*\nFILE.":        "Of \\*each\\*\nFILE.",
		"A  b*\nC  d":             "```\nA  b*\nC  d\n```",
		"See <x>:\n\nA_1  one\nB": "See \\<x>:\n\n```\nA_1  one\nB\n```",
	} {
		if got := markdown(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
