package main

import (
	"bufio"
	"fmt"
	"strings"
)

// A page writes objects, each once, and remembers which others are within them.
type page struct {
	types types
	out   *bufio.Writer
	known map[string]bool
	queue []string
}

func (p *page) write(heading, typeName string) error {
	members, err := p.types.members(typeName)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.out, "\n%s\n\n", heading)
	if text := about(p.types[typeName].doc); text != "" {
		fmt.Fprintf(p.out, "%s\n\n", wrapped(text, ""))
	}
	for _, m := range members {
		if m.refers != "" && !p.known[m.refers] {
			p.known[m.refers] = true
			p.queue = append(p.queue, m.refers)
		}
		kind := m.kind
		if m.refers != "" {
			name := title(m.refers)
			kind = strings.Replace(kind, name, "["+name+"](#"+strings.ToLower(name)+")", 1)
		}
		if m.optional {
			kind += ", *optional*"
		}
		p.out.WriteString(wrapped(fmt.Sprintf("- `%s` (%s): %s", m.name, kind, m.doc), "  ") + "\n")
	}
	return nil
}

// about is a type's comment without the sentence that says what prints it, and without the type's
// name at its beginning.
func about(doc string) string {
	if first, rest, _ := strings.Cut(doc, ". "); strings.Contains(first, "--json") {
		return rest
	}
	for _, verb := range []string{" is ", " says ", " are ", " sums "} {
		if before, after, ok := strings.Cut(doc, verb); ok && len(strings.Fields(before)) <= 2 {
			text := strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(verb)+" "+after, "is "),
				"are ")
			return strings.ToUpper(text[:1]) + text[1:]
		}
	}
	return doc
}

// wrapped breaks a text into lines, all but the first of them indented.
func wrapped(text, indent string) string {
	const columns = 100
	var out strings.Builder
	at := 0
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case at+1+len(word) > columns:
			out.WriteString("\n" + indent)
			at = len(indent)
		default:
			out.WriteByte(' ')
			at++
		}
		out.WriteString(word)
		at += len(word)
	}
	return out.String()
}
