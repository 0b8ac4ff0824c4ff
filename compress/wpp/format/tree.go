package format

import (
	"errors"
	"fmt"

	"wpptrace/compress/wpp"
)

// newRule stands for a rule at its first use.
const newRule = 1

// A treeDecoder takes the bodies of rules out of a tree, the coding of version 1. All bodies share
// one arena: no more symbols exist than the tree has elements.
type treeDecoder struct {
	tree      []uint32
	arena     []uint32
	bodies    [][]uint32
	mostRules int
	// of the bodies around the place reached, innermost last: the symbols still to come
	open [][]uint32
}

func decodeTree(tree []uint32, mostRules int) ([][]uint32, error) {
	d := &treeDecoder{tree: tree, arena: make([]uint32, len(tree)), mostRules: mostRules}
	if err := d.begin(); err != nil {
		return nil, err
	}
	for len(d.open) > 0 {
		top := &d.open[len(d.open)-1]
		if len(*top) == 0 {
			d.open = d.open[:len(d.open)-1]
			continue
		}
		to := &(*top)[0]
		*top = (*top)[1:]
		if err := d.symbol(to); err != nil {
			return nil, err
		}
	}
	if len(d.tree) > 0 {
		return nil, errTree
	}
	return d.bodies, nil
}

// errTree says that the tree of a grammar ends within a body, or goes on behind the last one.
var errTree = errors.New("bodies of rules disagree with their lengths")

func (d *treeDecoder) take() (uint32, error) {
	if len(d.tree) == 0 {
		return 0, errTree
	}
	v := d.tree[0]
	d.tree = d.tree[1:]
	return v, nil
}

// begin opens the body of the next rule, which begins here.
func (d *treeDecoder) begin() error {
	if len(d.bodies) == d.mostRules {
		return fmt.Errorf("has more rules than the %d that may be left", d.mostRules)
	}
	n, err := d.take()
	if err != nil {
		return err
	}
	if uint64(n) > uint64(len(d.arena)) {
		return errTree
	}
	body := d.arena[:n:n]
	d.arena = d.arena[n:]
	d.bodies = append(d.bodies, body)
	d.open = append(d.open, body)
	return nil
}

// symbol decodes the next symbol of the innermost open body.
func (d *treeDecoder) symbol(to *uint32) error {
	v, err := d.take()
	if err != nil {
		return err
	}
	next := len(d.bodies)
	switch {
	case v&1 == 0:
		*to = v >> 1
	case v == newRule:
		*to = wpp.RuleSymbol(next)
		return d.begin()
	case int64(v>>1) >= int64(next):
		return fmt.Errorf("refers back by %d rules of %d", v>>1, next)
	default:
		*to = wpp.RuleSymbol(next - int(v>>1))
	}
	return nil
}
