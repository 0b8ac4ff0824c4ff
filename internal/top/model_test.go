package top

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	gocmp "github.com/google/go-cmp/cmp"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/samples"
	"wpptrace/query/querytest"
)

var rewrite = flag.Bool("update", false, "rewrite the golden files")

// watched is a snapshot with samples, in windows, whose source files are there.
func watched() *wpp.Snapshot {
	s := querytest.Compressor()
	s.Files = []string{"testdata/main.c", "testdata/match.c"}
	s.Figures.Start = time.Now()
	s.Figures.Windows, s.Figures.Sampled = 15, 0.0123
	p := &samples.Profile{Period: time.Millisecond, CPUTime: 1200 * time.Millisecond,
		Wall: 2 * time.Second, Kernel: 500, Files: []samples.File{
			{Path: "/usr/bin/squeeze", Samples: 420,
				Routines: []samples.InRoutine{{Routine: 0, Samples: 100},
					{Routine: 1, Samples: 312}}},
			{Path: "/usr/lib/x86_64-linux-gnu/libc.so.6", Image: samples.NoImage, Samples: 80,
				Names: map[string]uint64{"memcpy": 50, "strlen": 20}},
			{Path: "/usr/lib/\x1blibrare.so", Image: samples.NoImage, Samples: 3},
		}}
	s.Sections = append(s.Sections, p.Section())
	return s
}

// screen is a model of a width that watches, after some keys.
func screen(t *testing.T, width, height int, keys ...tea.KeyPressMsg) *model {
	t.Helper()
	c, err := newContent(watched(), false)
	if err != nil {
		t.Fatal(err)
	}
	m := newModel(&Opening{Process: "process 4711 (squeeze)", Interval: time.Second, Budget: 0.05,
		MaxStall: 20 * time.Millisecond})
	m.Update(tea.WindowSizeMsg{Width: width, Height: height})
	s := status{Began: true, Duration: 12 * time.Second, Windows: 15, Paths: 16400,
		Overhead: 0.0493, HeldUp: 18300 * time.Microsecond}
	m.Update(updated{update: update{Status: s}, content: c})
	for _, k := range keys {
		m.Update(k)
	}
	return m
}

// typed are keys of letters, or such as have a name.
func typed(list ...string) (keys []tea.KeyPressMsg) {
	named := map[string]rune{"up": tea.KeyUp, "down": tea.KeyDown, "tab": tea.KeyTab,
		"enter": tea.KeyEnter, "esc": tea.KeyEscape, "backspace": tea.KeyBackspace,
		"space": tea.KeySpace}
	for _, key := range list {
		if code, is := named[key]; is {
			keys = append(keys, tea.KeyPressMsg{Code: code})
			continue
		}
		keys = append(keys, tea.KeyPressMsg{Code: []rune(key)[0], Text: key})
	}
	return keys
}

// looksAs checks the rows of a screen, what is highlighted with a mark in front.
func looksAs(t *testing.T, m *model, name string) {
	t.Helper()
	var got strings.Builder
	rows := m.rows()
	if len(rows) != m.height {
		t.Errorf("%s: %d rows of %d", name, len(rows), m.height)
	}
	for _, r := range rows {
		text := strings.NewReplacer("\x1b[1;7m", "", "\x1b[1m", "", "\x1b[7m", "", "\x1b[4m", "",
			"\x1b[2m", "", "\x1b[0m", "").Replace(r.text)
		if n := utf8.RuneCountInString(text); n > m.width {
			t.Errorf("%s: a row has %d columns of %d: %s", name, n, m.width, text)
		}
		got.WriteString(strings.TrimRight(text, " ") + "\n")
	}
	file := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("%s: want -, got +:\n%s", file, diff)
	}
}

// The screen at the usual sizes, and after keys.
func TestScreenGolden(t *testing.T) {
	for _, c := range []struct {
		name          string
		width, height int
		keys          []string
	}{
		{"80.txt", 80, 24, nil},
		{"160.txt", 160, 30, []string{"tab", "down"}},
		{"100-filter.txt", 100, 24, []string{"/", "m", "e", "m", "enter"}},
		{"80-typing.txt", 80, 24, []string{"/", "(", "x", "backspace"}},
		{"80-name.txt", 80, 24, []string{"n", "r", "tab", "c"}},
		{"tiny.txt", 20, 5, nil},
		{"40.txt", 40, 24, nil},
		{"40-filter.txt", 40, 24, []string{"/", "m", "e", "m", "enter", "p"}},
	} {
		looksAs(t, screen(t, c.width, c.height, typed(c.keys...)...), c.name)
	}
}

// Before anything is recorded the screen says so, with what is printed meanwhile.
func TestScreenBefore(t *testing.T) {
	m := newModel(&Opening{Process: "process 4711 (squeeze)"})
	m.Update(updated{update: update{Messages: []string{"wpptrace: 12 probes\x1b[2J"}}})
	looksAs(t, m, "before.txt")
}

// What is selected stays selected while tables change, and what is not there any more is not.
func TestSelectionStays(t *testing.T) {
	m := screen(t, 80, 24, typed("down", "down")...)
	name := func() string {
		t := &m.tables[ofRoutines]
		return t.entries[t.selected()].name
	}
	if got := name(); got != "memcpy" {
		t.Fatal(got)
	}
	for _, key := range typed("n", "r", "p", "s") {
		if m.Update(key); name() != "memcpy" {
			t.Errorf("after %s: %s", key, name())
		}
	}
	for _, key := range typed("/", "m", "a", "i", "n", "enter") {
		m.Update(key)
	}
	if got := name(); got != "main" {
		t.Error(got)
	}
	for _, key := range typed("esc") {
		m.Update(key)
	}
	if got := name(); got != "memcpy" {
		t.Error(got)
	}
}

// Held tables stay as they are, and figures go on; then the newest are shown.
func TestHold(t *testing.T) {
	m := screen(t, 80, 24, typed("space")...)
	before := m.content
	c, err := newContent(watched(), false)
	if err != nil {
		t.Fatal(err)
	}
	m.Update(updated{update: update{Status: status{Began: true, Paths: 99}}, content: c})
	if m.content != before || m.status.Paths != 99 {
		t.Error("held tables have changed, or figures have not")
	}
	for _, key := range typed("space") {
		m.Update(key)
	}
	if m.content != c {
		t.Error("the newest tables are not shown")
	}
}

// What is lost and why nothing more comes stay in view, however small the terminal.
func TestTroubleIsInView(t *testing.T) {
	m := screen(t, 80, 8)
	m.Update(updated{update: update{Status: status{Began: true, Lost: 7, HeldUp: time.Second},
		Trouble: errTooLarge.Error()}})
	text := m.View().Content
	for _, want := range []string{"lost 7 events", "longest stall 1000.0ms of 20ms",
		"more than 64 MB"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in view:\n%s", want, text)
		}
	}
}

// A message goes when it has been shown for long.
func TestMessagesGo(t *testing.T) {
	m := screen(t, 80, 24)
	for i := range mostAge + 2 {
		u := updated{}
		if i == 0 {
			u.Messages = []string{"wpptrace: once"}
		}
		m.Update(u)
		if is := strings.Contains(m.View().Content, "once"); is != (i <= mostAge) {
			t.Errorf("update %d: in view: %v", i, is)
		}
	}
}

// q and Ctrl-C end; while a filter is typed, q is a letter of it.
func TestQuit(t *testing.T) {
	ctrlC := tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl}
	for _, c := range []struct {
		before []string
		key    tea.KeyPressMsg
		quits  bool
	}{
		{nil, typed("q")[0], true}, {nil, ctrlC, true}, {[]string{"/"}, typed("q")[0], false},
		{[]string{"/"}, ctrlC, true}, {nil, typed("x")[0], false},
	} {
		m := screen(t, 80, 24, typed(c.before...)...)
		if _, cmd := m.Update(c.key); (cmd != nil) != c.quits {
			t.Errorf("%q, %s: quits: %v", c.before, c.key, cmd != nil)
		}
	}
}

// What cannot be read says why, once: the routine's lines are numbered all the same.
func TestSourceIsMissing(t *testing.T) {
	s := watched()
	s.Files[1] = "testdata/nosuch.c"
	c, err := newContent(s, false)
	if err != nil {
		t.Fatal(err)
	}
	m := screen(t, 80, 24)
	m.Update(updated{content: c})
	list := m.sources.rows(s, m.labels, []uint32{2})
	if len(list) < 3 || !strings.Contains(list[1].text, "no such file") ||
		!strings.HasPrefix(list[2].text, ">   110") {
		t.Errorf("%+v", list)
	}
	if !errors.Is(m.sources.text("testdata/nosuch.c").err, os.ErrNotExist) {
		t.Error("why is not remembered")
	}
}
