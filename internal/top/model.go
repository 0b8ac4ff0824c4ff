package top

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"wpptrace/query/names"
	"wpptrace/query/report"
)

// A style is how a row looks.
type style int

const (
	plain       style = iota
	bold              // a title
	title             // of the table that keys work on
	chosen            // the entry that is selected
	faintChosen       // that of the other table
	faint             // what is less important
)

// A row is a line of the screen.
type row struct {
	text  string
	style style
}

// The tables.
const (
	ofRoutines = iota
	ofSubpaths
	tables
)

// A model is the state of the screen. It knows neither time nor terminal.
type model struct {
	opening Opening
	width   int
	height  int
	status  status
	content *content // that is shown; nil: none has come
	newest  *content // that came last
	labels  *report.Labels
	held    bool // the tables stay as they are
	trouble string

	tables  [tables]table
	focus   int
	filter  *regexp.Regexp // nil: there is none
	typing  bool           // a filter is being typed
	typed   string
	sources *sources
	source  []row // of what is selected
	scroll  int   // rows of it

	message string // the last that was printed
	age     int    // updates since then
}

// mostAge is for how many updates a message is shown.
const mostAge = 10

// An updated is an update that has come, with what its snapshot says, if it has one.
type updated struct {
	update
	content *content
}

func newModel(o *Opening) *model {
	const usualWidth, usualHeight = 80, 24
	return &model{opening: *o, width: usualWidth, height: usualHeight, sources: newSources(),
		tables: [tables]table{
			{titles: [2]string{"CALLS", "PATHS"}, title: "ROUTINE", second: "HOTTEST PATH",
				by: byShare},
			{titles: [2]string{"COUNT", "LEN"}, title: "HOT SUBPATH", by: byShare},
		}}
}

func (m *model) Init() tea.Cmd { return nil }

// Update takes an update, a key, or the size of the terminal.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case updated:
		m.take(&msg)
	case tea.KeyPressMsg:
		if m.press(msg.String(), msg.Text) {
			return m, tea.Quit
		}
	}
	return m, nil
}

// take takes what is new of the recording.
func (m *model) take(u *updated) {
	if u.Status.Began {
		m.status = u.Status
	}
	m.trouble = u.Trouble
	if m.age++; m.age > mostAge {
		m.message = ""
	}
	if n := len(u.Messages); n > 0 {
		m.age, m.message = 0, strings.TrimPrefix(u.Messages[n-1], "wpptrace: ")
	}
	if u.content != nil {
		m.newest = u.content
		m.refresh()
	}
}

// refresh shows what came last, unless it is held.
func (m *model) refresh() {
	if !m.held && m.content != m.newest {
		m.content, m.labels = m.newest, report.NewLabels(m.newest.snapshot)
	}
	m.arrange()
}

func (m *model) arrange() {
	if m.content != nil {
		m.tables[ofRoutines].arrange(routineEntries(m.content), m.filter)
		m.tables[ofSubpaths].arrange(subpathEntries(m.content), m.filter)
		m.showSource()
	}
}

// showSource shows the source of what is selected.
func (m *model) showSource() {
	m.source = nil
	if symbols := m.tables[m.focus].symbols(); symbols != nil {
		m.source = m.sources.rows(m.content.snapshot, m.labels, symbols)
	}
}

// press does what a key asks for; quit: nothing more is to be shown.
func (m *model) press(key, text string) (quit bool) {
	if key == "ctrl+c" {
		return true
	}
	if m.typing {
		m.pressTyping(key, text)
		return false
	}
	t := &m.tables[m.focus]
	page := max(m.height/tables-1, 1)
	switch key {
	case "q":
		return true
	case "up", "k":
		m.choose(-1)
	case "down", "j":
		m.choose(1)
	case "pgup":
		m.choose(-page)
	case "pgdown":
		m.choose(page)
	case "home":
		m.choose(-t.of)
	case "end":
		m.choose(t.of)
	case "tab":
		m.focus, m.scroll = (m.focus+1)%tables, 0
		m.showSource()
	case "s", "c", "p", "n":
		t.by, t.reverse = rune(key[0]), false
		m.arrange()
	case "r":
		t.reverse = !t.reverse
		m.arrange()
	case "[":
		m.scroll = max(m.scroll-1, 0)
	case "]":
		m.scroll++
	case "space":
		m.held = !m.held
		m.refresh()
	case "/":
		m.typing, m.typed = true, ""
		if m.filter != nil {
			m.typed = m.filter.String()
		}
	case "esc":
		m.filter = nil
		m.arrange()
	}
	return false
}

func (m *model) choose(by int) {
	m.tables[m.focus].move(by)
	m.scroll = 0
	m.showSource()
}

// pressTyping takes a key of a filter.
func (m *model) pressTyping(key, text string) {
	switch key {
	case "enter":
		re, err := regexp.Compile(m.typed)
		if err != nil {
			return // the line says so
		}
		if m.typing, m.filter = false, re; m.typed == "" {
			m.filter = nil
		}
		m.arrange()
	case "esc":
		m.typing = false
	case "backspace":
		_, n := utf8.DecodeLastRuneInString(m.typed)
		m.typed = m.typed[:len(m.typed)-n]
	default:
		m.typed += names.Printable(text)
	}
}

// The widths from which on, and in which share of it, the source stands beside the subpaths.
const (
	wide       = 140
	leftOfWide = 0.5
)

// narrow is the width of the screen below which tables have one number, and, if it has at least
// high rows, what does not fit into a row has more of them.
const narrow, high = 60, 16

func (m *model) folds() bool { return m.width < narrow && m.height >= high }

// pack makes rows of parts, as many side by side as there is room for; one row where they are
// cut off.
func (m *model) pack(parts ...string) (list []string) {
	const gap = "  "
	if !m.folds() {
		return []string{strings.Join(parts, gap)}
	}
	for _, part := range parts {
		last := len(list) - 1
		if last >= 0 && utf8.RuneCountInString(list[last]+gap+part) <= m.width {
			list[last] += gap + part
			continue
		}
		list = append(list, part)
	}
	return list
}

// wrap makes rows of a text, at blanks; one row where it is cut off.
func (m *model) wrap(text string) (list []string) {
	if !m.folds() {
		return []string{text}
	}
	for _, word := range strings.Fields(text) {
		last := len(list) - 1
		if last >= 0 && utf8.RuneCountInString(list[last]+" "+word) <= m.width {
			list[last] += " " + word
			continue
		}
		list = append(list, word)
	}
	return list
}

// rows are the screen.
func (m *model) rows() []row {
	list := m.head()
	foot := m.foot()
	left := m.height - len(list) - len(foot)
	table := func(which, width, height int) []row {
		return m.tables[which].rows(width, height, m.focus == which, m.width >= withIntervals)
	}
	switch {
	case m.content == nil:
		list = append(list, row{}, row{"nothing is recorded yet", faint})
	case m.width >= wide:
		upper := left / 2
		list = append(list, table(ofRoutines, m.width, upper)...)
		half := int(leftOfWide * float64(m.width))
		const gap = "   "
		subpaths := table(ofSubpaths, half, left-upper)
		source := m.sourceRows(left-upper, m.width-half-len(gap))
		for i := range subpaths {
			list = append(list, beside(subpaths[i], source[i], half, gap))
		}
	default:
		routines, subpaths := left*2/5, left*3/10
		list = append(list, table(ofRoutines, m.width, routines)...)
		list = append(list, table(ofSubpaths, m.width, subpaths)...)
		list = append(list, m.sourceRows(left-routines-subpaths, m.width)...)
	}
	for len(list) < m.height-len(foot) {
		list = append(list, row{})
	}
	list = list[:max(m.height-len(foot), 0)]
	list = append(list, foot...)
	for i := range list {
		if list[i].style != mixed {
			list[i].text = cut(list[i].text, m.width)
		}
	}
	return list[:min(len(list), m.height)]
}

// head is what is always in view.
func (m *model) head() []row {
	s := &m.status
	if !s.Began {
		return []row{{m.title("it is being prepared"), bold}}
	}
	state := append([]string{fmt.Sprintf("%.0fs", s.Duration.Seconds())}, progress(s)...)
	if m.content != nil && m.width >= withIntervals {
		if f := &m.content.snapshot.Figures; f.IsSampled() {
			state = append(state, "sampled "+report.SampledText(f)+" of its CPU time")
		}
	}
	if m.held {
		state = append(state, "held")
	}
	list := []row{{m.title(state...), bold}}
	if m.folds() {
		list[0].text = m.title()
		list = append(list, styled(bold, m.pack(state...))...)
	}
	of := plain
	if s.Lost > 0 || s.HeldUp > m.opening.MaxStall {
		of = bold
	}
	list = append(list, styled(of, m.pack(costs(&m.opening, s)...))...)
	if m.content != nil && m.content.time != "" {
		folded := fold("CPU time: "+m.content.time, m.width)
		if m.folds() {
			folded = folded[:min(len(folded), few)]
		}
		list = append(list, styled(plain, folded)...)
	}
	return list
}

// few rows are what a text gets at most that is folded.
const few = 3

// styled makes rows of texts.
func styled(s style, texts []string) (list []row) {
	for _, text := range texts {
		list = append(list, row{text, s})
	}
	return list
}

// title is the first row: of the process, as much as there is room for.
func (m *model) title(state ...string) string {
	const gap = "  "
	before, after := "wpptrace top"+gap, strings.Join(append([]string{""}, state...), gap)
	return before + names.ShortenMiddle(m.opening.Process, m.width-len(before)-len(after)) + after
}

// fold makes rows of a list that is too wide for one.
func fold(text string, width int) (list []string) {
	const indent = "  "
	for utf8.RuneCountInString(text) > width {
		part := cut(text, width+1)
		at := max(strings.LastIndex(part, ", ")+1, strings.LastIndex(part, " ("))
		if at <= len(indent) {
			break
		}
		list, text = append(list, text[:at]), indent+text[at+1:]
	}
	return append(list, text)
}

// foot is what there is to say, and what keys do.
func (m *model) foot() (list []row) {
	if text := m.message; m.trouble != "" {
		list = styled(bold, m.wrap(names.Printable(m.trouble)))
	} else if text != "" {
		list = styled(faint, m.wrap(names.Printable(text)))
	} else if m.content != nil && len(m.content.next) > 0 {
		list = styled(plain, m.wrap("next: "+strings.Join(m.content.next, "; ")))
	}
	list = list[:min(len(list), few)]
	if m.typing {
		line := "only routines that match (enter: show them, esc: as before): /" + m.typed
		if _, err := regexp.Compile(m.typed); err != nil {
			line += "  this is no regular expression yet"
		}
		return append(list, row{line, title})
	}
	keys := []string{"q quit", "up/down select", "tab table", "s c p n sort", "r reverse",
		"/ filter", "space hold"}
	if m.filter != nil {
		keys = append([]string{"/" + m.filter.String() + " (esc: all)"}, keys...)
	}
	return append(list, row{m.pack(keys...)[0], faint})
}

// sourceRows are the source of what is selected.
func (m *model) sourceRows(height, width int) []row {
	if height < 1 {
		return nil
	}
	list := []row{{rule("SOURCE ([ ] scroll)", width), bold}}
	m.scroll = min(m.scroll, max(len(m.source)-(height-1), 0))
	list = append(list, m.source[m.scroll:]...)
	for len(list) < height {
		list = append(list, row{})
	}
	for i := range list {
		list[i].text = cut(list[i].text, width)
	}
	return list[:height]
}

// cut cuts a text off that is too wide.
func cut(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:max(width, 0)])
}
