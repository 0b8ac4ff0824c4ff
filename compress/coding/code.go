package coding

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"wpptrace/compress/sequitur"
	"wpptrace/internal/saturating"
)

// From so many symbols on, a grammar is coded in one context: what mixing them saves of its bytes
// is not worth its time then.
const manySymbols = 1 << 16

// Encode writes a grammar: the bodies of its rules, the start rule's first, with symbols as
// sequitur has them. Each rule but the start rule must have a body, be used, and not derive itself.
// It takes a few microseconds and some hundred bytes a symbol, one microsecond from 2^16 symbols
// on, and 5 MiB besides.
func Encode(bodies [][]uint32) []byte {
	symbols := symbolsOf(bodies)
	mixed := contexts
	if symbols >= manySymbols {
		mixed = 0
	}
	return encode([]byte{byte(mixed)}, bodies, symbols, mixed)
}

// EncodeQuick is Encode of a grammar that is to be read soon when it is needed: a small one takes a
// quarter of the time, and a fifth more bytes at most.
func EncodeQuick(bodies [][]uint32) []byte {
	return encode([]byte{0}, bodies, symbolsOf(bodies), 0)
}

func symbolsOf(bodies [][]uint32) (n uint64) {
	for _, body := range bodies {
		n += uint64(len(body))
	}
	return n
}

// A grammarModel codes a grammar symbol by symbol. The same model writes and reads: what is to be
// written is given, and ignored when it reads; what is written or read is returned.
type grammarModel interface {
	begin() // opens the body of the next rule
	// whether the innermost body ends; only the start rule's may be empty
	ends(y bool) bool
	end(rule int)                // closes it: its rule is now the next symbol of the body around it
	isNew(y bool) bool           // whether the next symbol is a new rule
	symbol(symbol uint32) uint32 // a symbol that is no new rule
	release()                    // gives back its memory
}

// newGrammarModel makes the model for a number of symbols that mixes so many contexts, or 0: one
// context, without mixing.
func newGrammarModel(c *coder, symbols uint64, mixed int) grammarModel {
	if mixed == 0 {
		return newQuickModel(c, symbols)
	}
	return newModel(c, symbols, mixed)
}

// encode appends a grammar of so many symbols.
func encode(out []byte, bodies [][]uint32, symbols uint64, mixed int) []byte {
	w := newWriter(binary.AppendUvarint(out, symbols))
	m := newGrammarModel(w, symbols, mixed)
	defer m.release()
	type open struct {
		rule int
		rest []uint32
	}
	numbers := make([]int, len(bodies)) // 0: not met yet
	for next, stack := 1, []open{{0, bodies[0]}}; len(stack) > 0; {
		top := &stack[len(stack)-1]
		if m.ends(len(top.rest) == 0) {
			m.end(top.rule)
			stack = stack[:len(stack)-1]
			continue
		}
		v := top.rest[0]
		top.rest = top.rest[1:]
		rule := -1
		if sequitur.IsRule(v) {
			rule = sequitur.RuleOf(v)
			v = sequitur.RuleSymbol(numbers[rule])
		}
		if !m.isNew(rule >= 0 && numbers[rule] == 0) {
			m.symbol(v)
			continue
		}
		numbers[rule] = next
		m.begin()
		stack = append(stack, open{next, bodies[rule]})
		next++
	}
	return w.finish()
}

var (
	errShort   = errors.New("coded grammar ends too early")
	errMixed   = fmt.Errorf("coded grammar mixes other than 0 to %d contexts", contexts)
	errLong    = errors.New("coded grammar goes on behind its end")
	errSymbols = errors.New("coded grammar has other than the declared number of symbols")
)

// Decode reads what Encode wrote. It refuses a grammar of more symbols or rules than may be left
// before it spends memory on them: 16 bytes a symbol and 150 a rule, while it is read. No rule that
// it returns derives itself, and all are used.
func Decode(coded []byte, mostSymbols, mostRules uint64) ([][]uint32, error) {
	return DecodeFirst(coded, mostSymbols, mostRules, math.MaxUint64)
}

// DecodeFirst is Decode for who needs the first terminals alone that the grammar derives, so many.
// Where it derives more, what it returns derives these and some more, and what is behind is neither
// read nor checked.
func DecodeFirst(coded []byte, mostSymbols, mostRules, terminals uint64) ([][]uint32, error) {
	switch {
	case len(coded) == 0:
		return nil, errShort
	case int(coded[0]) > contexts:
		return nil, errMixed
	}
	return decode(coded[1:], func(uint64) int { return int(coded[0]) }, mostSymbols, mostRules,
		terminals)
}

// DecodeEarly reads what Encode wrote before it wrote how many contexts are mixed, as Decode does.
func DecodeEarly(coded []byte, mostSymbols, mostRules uint64) ([][]uint32, error) {
	return decode(coded, mixedEarly, mostSymbols, mostRules, math.MaxUint64)
}

func decode(coded []byte, mixed func(symbols uint64) int, mostSymbols, mostRules,
	terminals uint64) ([][]uint32, error) {
	symbols, n := binary.Uvarint(coded)
	if n <= 0 {
		return nil, errShort
	}
	if symbols > mostSymbols {
		return nil, fmt.Errorf("coded grammar declares %d symbols, more than the %d that may be "+
			"left", symbols, mostSymbols)
	}
	d := decoder{reader: newReader(coded[n:]), left: symbols, mostRules: mostRules}
	d.model = newGrammarModel(d.reader, symbols, mixed(symbols))
	defer d.model.release()
	d.begin()
	for len(d.open) > 0 && (d.derived < terminals || terminals == math.MaxUint64) {
		if err := d.symbol(); err != nil {
			return nil, err
		}
	}
	switch {
	case len(d.open) > 0: // no body is empty: what came last was no beginning of one
		for len(d.open) > 0 {
			d.close()
		}
		return d.bodies, nil
	case len(d.reader.in) > 0:
		return nil, errLong
	case d.left > 0:
		return nil, errSymbols
	}
	return d.bodies, nil
}

// A decoder makes bodies of what its model reads.
type decoder struct {
	reader *coder
	model  grammarModel
	bodies [][]uint32
	// terminals that what has been read derives, in all and by rules that are complete: 2^64-1 are
	// as many or more
	derived uint64
	lengths []uint64
	open    []openBody
	inOpen  []uint32 // the symbols of the open bodies, the innermost's last
	left    uint64   // symbols that may still come

	mostRules uint64
}

// An openBody is a rule whose body begins at a place in inOpen, and behind so many terminals, and
// has not ended.
type openBody struct {
	rule, at int
	behind   uint64
}

func (d *decoder) begin() {
	d.open = append(d.open, openBody{len(d.bodies), len(d.inOpen), d.derived})
	d.bodies, d.lengths = append(d.bodies, nil), append(d.lengths, 0)
}

// symbol reads the next symbol, or the end of a body.
func (d *decoder) symbol() error {
	ends := d.model.ends(false)
	isNew := !ends && d.model.isNew(false)
	switch {
	case d.reader.missing > 0:
		return errShort
	case ends:
		d.model.end(d.close())
		return nil
	case d.left == 0:
		return errSymbols
	}
	d.left--
	if !isNew {
		symbol, n := d.model.symbol(0), uint64(1)
		if sequitur.IsRule(symbol) {
			n = d.lengths[sequitur.RuleOf(symbol)]
		}
		d.inOpen = append(d.inOpen, symbol)
		d.derived = saturating.Add(d.derived, n)
		return nil
	}
	if uint64(len(d.bodies)) >= d.mostRules {
		return fmt.Errorf("coded grammar has more rules than the %d that may be left", d.mostRules)
	}
	d.inOpen = append(d.inOpen, sequitur.RuleSymbol(len(d.bodies)))
	d.model.begin()
	d.begin()
	return nil
}

// close closes the innermost body, and returns its rule.
func (d *decoder) close() int {
	top := d.open[len(d.open)-1]
	d.open = d.open[:len(d.open)-1]
	d.bodies[top.rule] = slices.Clone(d.inOpen[top.at:])
	d.inOpen = d.inOpen[:top.at]
	d.lengths[top.rule] = d.derived - top.behind
	return top.rule
}
