package rules

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"wpptrace/compress/wpp"
	"wpptrace/query/names"
)

// A pattern is a regular expression over paths, as a tree.
type pattern struct {
	op    patternOp
	of    []*pattern // none of a path; of a repetition, one
	atom  int        // of a path: index in atoms, or anyPath
	not   bool       // of a path: any but the atom's, and but those of nor
	nor   []int
	least int // of a repetition
	most  int // of a repetition; unbounded: no limit
}

// isOneOf reports whether the pattern is one path out of some that it names.
func (p *pattern) isOneOf() bool {
	switch p.op {
	case onePath:
		return !p.not
	case repetition:
		return false
	}
	return (p.op == choice || len(p.of) == 1) && !slices.ContainsFunc(p.of,
		func(part *pattern) bool { return !part.isOneOf() })
}

type patternOp int

const (
	onePath  patternOp = iota
	sequence           // all of them, one after the other
	choice             // one of them
	repetition
)

const (
	anyPath   = -1
	unbounded = -1
	mostNames = 64
)

// pathNames are the names in patterns, the atoms of a rule, each once, with the paths that they
// stand for. Without a snapshot, any name may be one, and stands for none.
type pathNames struct {
	snapshot *wpp.Snapshot // nil: there is none
	known    *names.Names  // of the snapshot
	names    []string
	number   map[string]int
	mask     []uint64 // symbol -> the atoms that it is in, a bit each
}

func newPathNames(s *wpp.Snapshot) *pathNames {
	return &pathNames{snapshot: s, known: names.Of(s), number: make(map[string]int),
		mask: make([]uint64, len(s.Symbols))}
}

func withoutSnapshot() *pathNames { return &pathNames{number: make(map[string]int)} }

// add returns the number of a name: ROUTINE is all paths of a routine, ROUTINE#N one of them,
// ROUTINE() those that enter it. In quotes, what looks like the end of a name may belong to the
// routine's. Of that "..." may stand for a part, and @ADDRESS may be missing. A path that did not
// run is no error, one that the routine does not have is one, and so is a routine that does not
// exist.
func (a *pathNames) add(name string) (int, error) {
	if n, ok := a.number[name]; ok {
		return n, nil
	}
	if len(a.names) == mostNames {
		return 0, fmt.Errorf("more than %d names", mostNames)
	}
	isNamed := func(*wpp.Symbol) bool { return false }
	if a.known != nil {
		var err error
		if isNamed, err = a.known.Select(name); err != nil {
			return 0, err
		}
	}
	n := len(a.names)
	a.names = append(a.names, name)
	a.number[name] = n
	for sym := range a.mask {
		if isNamed(&a.snapshot.Symbols[sym]) {
			a.mask[sym] |= 1 << n
		}
	}
	return n, nil
}

// untraced returns the names with routines that were not traced: these may have run.
func (a *pathNames) untraced() (list []string) {
	for _, name := range a.names {
		routines, _ := a.known.Split(name)
		if anyOf(routines, func(r int) bool { return a.snapshot.Routines[r].LeftOut != "" }) {
			list = append(list, name)
		}
	}
	return list
}

// inlined returns the atoms, a bit each, whose routines' code ran in other routines' paths as well:
// calls of it there are not counted.
func (a *pathNames) inlined() (atoms uint64) {
	for n, name := range a.names {
		if len(inlinedAs(a.known, name).Into) > 0 {
			atoms |= 1 << n
		}
	}
	return atoms
}

func (a *pathNames) namesOf(atoms uint64) (list []string) {
	for n, name := range a.names {
		if atoms>>n&1 == 1 {
			list = append(list, name)
		}
	}
	return list
}

// neverRan returns the names of whose routines, all of them traced, no path ran in any thread.
func (a *pathNames) neverRan() (list []string) {
	ran := make([]bool, len(a.snapshot.Routines))
	for i := range a.snapshot.Symbols {
		if p := &a.snapshot.Symbols[i]; !p.IsMark {
			ran[p.Routine] = true
		}
	}
	for _, name := range a.names {
		routines, _ := a.known.Split(name)
		if !anyOf(routines,
			func(r int) bool { return ran[r] || a.snapshot.Routines[r].LeftOut != "" }) {
			list = append(list, name)
		}
	}
	return list
}

func anyOf(routines map[int]bool, has func(routine int) bool) bool {
	for r := range routines {
		if has(r) {
			return true
		}
	}
	return false
}

// A token is a word or a sign of a pattern.
type token struct {
	text  string
	name  bool
	glued bool  // to the one before, without a space
	call  *call // of a name that is a call with values
}

const signs = "()|*+?{}!"

// tokens splits a pattern. A name ends at a space or a sign, but for "()" in it; one that begins
// with others is put in quotes, which stay with it.
func tokens(text string) ([]token, error) {
	var list []token
	for glued := false; text != ""; glued = true {
		text = strings.TrimLeftFunc(text,
			func(r rune) bool { glued = glued && !unicode.IsSpace(r); return unicode.IsSpace(r) })
		if text == "" {
			break
		}
		if strings.IndexByte(signs, text[0]) >= 0 {
			list = append(list, token{text: text[:1], glued: glued})
			text = text[1:]
			continue
		}
		c, err := cutCall(text)
		if err != nil {
			return nil, err
		}
		if c != nil {
			list = append(list, token{text: c.text, name: true, glued: glued, call: c})
			text = text[len(c.text):]
			continue
		}
		end := 0
		if text[0] == '\'' || text[0] == '"' {
			inner, _, ok := names.Unquote(text)
			if !ok {
				return nil, fmt.Errorf("no %c at the end of %s", text[0], names.Printable(text))
			}
			end = len(inner) + 2
		}
		end += nameEnd(text[end:])
		list = append(list, token{text: text[:end], name: true, glued: glued})
		text = text[end:]
	}
	return list, nil
}

// nameEnd is where a name without quotes ends.
func nameEnd(text string) int {
	for end := 0; ; end += len("()") {
		n := strings.IndexFunc(text[end:],
			func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(signs, r) })
		if n < 0 {
			return len(text)
		}
		if end += n; !strings.HasPrefix(text[end:], "()") {
			return end
		}
	}
}

// sequencePattern reads a sequence of names, "*" for any path, and "**" for up to gap paths. What
// is a name as a whole, as tables print it, needs no quotes.
func sequencePattern(a *pathNames, text string, gap int) (*pattern, error) {
	list, err := tokens(text)
	if a.known != nil && a.known.IsName(text) {
		list, err = []token{{text: text, name: true}}, nil
	}
	if err != nil {
		return nil, err
	}
	whole := &pattern{op: sequence}
	for i := 0; i < len(list); i++ {
		item := &pattern{atom: anyPath}
		switch {
		case list[i].name:
			if item.atom, err = a.add(list[i].text); err != nil {
				return nil, err
			}
		case list[i].text != "*":
			return nil, fmt.Errorf("%q is neither a name, nor *, nor **: put names that hold it "+
				"in quotes", list[i].text)
		case i+1 < len(list) && list[i+1] == (token{text: "*", glued: true}):
			item = &pattern{op: repetition, of: []*pattern{item}, most: gap}
			i++
		}
		whole.of = append(whole.of, item)
	}
	return whole, nil
}

// A patternParser reads a regular expression by recursive descent.
type patternParser struct {
	add   func(name token) (atom int, err error)
	rest  []token
	depth int
}

// mostNested bounds the parentheses within each other.
const mostNested = 100

// regexPattern reads a regular expression: names, "." for any path, "!NAME" for any other,
// "!(NAME|NAME)" for any but these, "|", "*", "+", "?", "{N}", "{N,}", "{N,M}" and parentheses.
func regexPattern(a *pathNames, text string) (*pattern, error) {
	list, err := tokens(text)
	if err != nil {
		return nil, err
	}
	add := func(name token) (int, error) { return a.add(name.text) }
	return parsePattern(list, add)
}

func parsePattern(list []token, add func(token) (int, error)) (*pattern, error) {
	p := &patternParser{add: add, rest: list}
	whole, err := p.choice()
	if err != nil {
		return nil, err
	}
	if len(p.rest) > 0 {
		return nil, fmt.Errorf("%q has no beginning", p.rest[0].text)
	}
	return whole, nil
}

func (p *patternParser) next(text string) bool {
	if len(p.rest) == 0 || p.rest[0].name || p.rest[0].text != text {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

func (p *patternParser) choice() (*pattern, error) {
	if p.depth++; p.depth > mostNested {
		return nil, fmt.Errorf("more than %d parentheses in each other", mostNested)
	}
	defer func() { p.depth-- }()
	whole := &pattern{op: choice}
	for {
		one, err := p.sequence()
		if err != nil {
			return nil, err
		}
		whole.of = append(whole.of, one)
		if !p.next("|") {
			return whole, nil
		}
	}
}

func (p *patternParser) sequence() (*pattern, error) {
	whole := &pattern{op: sequence}
	for len(p.rest) > 0 && (p.rest[0].name || p.rest[0].text == "(" || p.rest[0].text == "!") {
		one, err := p.single()
		if err != nil {
			return nil, err
		}
		if one, err = p.repeated(one); err != nil {
			return nil, err
		}
		whole.of = append(whole.of, one)
	}
	if len(whole.of) == 0 {
		return nil, errors.New("a path is missing")
	}
	return whole, nil
}

func (p *patternParser) single() (*pattern, error) {
	if p.next("(") {
		inner, err := p.choice()
		if err == nil && !p.next(")") {
			err = errors.New("no ) for a (")
		}
		return inner, err
	}
	one := &pattern{not: p.next("!"), atom: anyPath}
	if one.not && p.next("(") {
		return p.noneOf()
	}
	if len(p.rest) == 0 || !p.rest[0].name {
		return nil, errors.New("no name behind '!'")
	}
	name := p.rest[0]
	p.rest = p.rest[1:]
	if name.text == "." && !one.not {
		return one, nil
	}
	var err error
	one.atom, err = p.add(name)
	return one, err
}

// noneOf reads names behind "!(".
func (p *patternParser) noneOf() (*pattern, error) {
	one := &pattern{not: true}
	for {
		if len(p.rest) == 0 || !p.rest[0].name {
			return nil, errors.New("'!(' takes names with '|' between")
		}
		atom, err := p.add(p.rest[0])
		if err != nil {
			return nil, err
		}
		p.rest = p.rest[1:]
		one.nor = append(one.nor, atom)
		if p.next(")") {
			one.atom, one.nor = one.nor[0], one.nor[1:]
			return one, nil
		}
		if !p.next("|") {
			return nil, errors.New("'!(' takes names with '|' between")
		}
	}
}

func (p *patternParser) repeated(one *pattern) (*pattern, error) {
	for {
		r := &pattern{op: repetition, of: []*pattern{one}, most: unbounded}
		switch {
		case p.next("*"):
		case p.next("+"):
			r.least = 1
		case p.next("?"):
			r.most = 1
		case p.next("{"):
			if err := p.bounds(r); err != nil {
				return nil, err
			}
		default:
			return one, nil
		}
		one = r
	}
}

func (p *patternParser) bounds(r *pattern) (err error) {
	if len(p.rest) == 0 || !p.rest[0].name {
		return errors.New("no number behind {")
	}
	least, most, two := strings.Cut(p.rest[0].text, ",")
	p.rest = p.rest[1:]
	if r.least, err = count(least); err != nil {
		return fmt.Errorf("%q is no number", least)
	}
	switch {
	case !two:
		r.most = r.least
	case most != "":
		if r.most, err = count(most); err != nil {
			return fmt.Errorf("%q is no number", most)
		}
	}
	if r.most < r.least && r.most != unbounded {
		return fmt.Errorf("{%d,%d} is no range", r.least, r.most)
	}
	if !p.next("}") {
		return errors.New("no } for a {")
	}
	return nil
}

// count reads how often something is repeated.
func count(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 31)
	return int(n), err
}
