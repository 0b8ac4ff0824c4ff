package valuing

import (
	"errors"
	"fmt"

	"wpptrace/query/names"
	"wpptrace/query/stepping"
	"wpptrace/query/valuereport"
)

// watch watches the bytes of a variable, where they are now, or of an address.
func (c *console) watch(args string) error {
	if args == "" {
		return errors.New("give VARIABLE or ADDRESS:SIZE")
	}
	m, err := c.state.In(c.frame)
	if err != nil {
		return err
	}
	w := watch{text: args}
	if w.Watch, w.asked, err = valuereport.WatchAt(m, args); err != nil {
		return err
	}
	c.made++
	w.number = c.made
	c.setWatches(append(c.watches, w))
	fmt.Fprintf(c.out, "Watch %d at %s: %x:%d\n", w.number, names.Printable(args), w.Addr, w.Size)
	return nil
}

func (c *console) setWatches(list []watch) {
	c.watches = list
	var of []stepping.Watch
	for i := range list {
		of = append(of, list[i].Watch)
	}
	c.state.SetWatches(of)
}

// showWrites writes what the instruction that comes next writes.
func (c *console) showWrites() error {
	list, err := c.state.WritesHere()
	if err != nil {
		return err
	}
	now, err := c.state.In(0)
	if err != nil {
		return err
	}
	behind, err := c.state.Behind()
	if err != nil {
		return err
	}
	for _, x := range list {
		w := &c.watches[x.Watch]
		what := "is written"
		if x.Found {
			what = "has been written by code that is not traced, or another thread"
		}
		fmt.Fprintf(c.out, "Watch %d at %s %s: %s -> %s\n", w.number, names.Printable(w.text), what,
			w.textAt(now), w.textAt(behind))
	}
	return nil
}

// textAt is what the bytes hold.
func (w *watch) textAt(m *stepping.Moment) string {
	return valuereport.NumberAt(m, w.Watch, w.asked)
}
