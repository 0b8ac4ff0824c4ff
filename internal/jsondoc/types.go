package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	"wpptrace/query"
	"wpptrace/query/report"
)

// types are those of the sources, by package and name: report.Label.
type types map[string]*declared

type declared struct {
	name string // of the package
	doc  string
	expr ast.Expr
}

// read adds the types of a directory's files, but those of tests.
func (t types) read(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return err
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			return fmt.Errorf("read types: %w", err)
		}
		for _, d := range f.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.TYPE {
				t.add(f.Name.Name, g)
			}
		}
	}
	return nil
}

func (t types) add(name string, g *ast.GenDecl) {
	for _, s := range g.Specs {
		x := s.(*ast.TypeSpec)
		doc := g.Doc
		if x.Doc != nil {
			doc = x.Doc
		}
		t[name+"."+x.Name.Name] = &declared{name, plain(doc), x.Type}
	}
}

// plain is a comment as running text.
func plain(c *ast.CommentGroup) string { return strings.Join(strings.Fields(c.Text()), " ") }

// A member is one of a JSON object.
type member struct {
	name     string
	kind     string // as the page calls it
	refers   string // to the type of an object within; "": none
	optional bool
	doc      string
}

// members are those of an object, the members of embedded ones among them. Each has a comment.
func (t types) members(typeName string) (list []member, err error) {
	d := t[typeName]
	if d == nil {
		return nil, fmt.Errorf("there is no type %s", typeName)
	}
	s, ok := d.expr.(*ast.StructType)
	if !ok {
		return nil, fmt.Errorf("type %s is no struct", typeName)
	}
	for _, f := range s.Fields.List {
		if len(f.Names) == 0 {
			within, err := t.members(qualified(d.name, f.Type))
			if err != nil {
				return nil, err
			}
			list = append(list, within...)
			continue
		}
		tag := ""
		if f.Tag != nil {
			text, _ := strconv.Unquote(f.Tag.Value)
			tag = reflect.StructTag(text).Get("json")
		}
		name, options, _ := strings.Cut(tag, ",")
		if name == "" || name == "-" {
			continue
		}
		m := member{name: name, optional: strings.Contains(options, "omit"),
			doc: strings.TrimSpace(plain(f.Doc) + " " + plain(f.Comment))}
		if name == "schema_version" {
			m.doc = "of the object; 2"
		}
		if m.doc == "" {
			return nil, fmt.Errorf("member %s of %s has no comment that says what it is", name,
				typeName)
		}
		m.kind, m.refers = t.kind(d.name, f.Type)
		if typeName == "query.Stat" && figures[name] && !strings.HasSuffix(m.kind, " or null") {
			m.kind += " or null"
		}
		list = append(list, m)
	}
	return list, nil
}

// qualified is the name of a type that is mentioned in a package, with its own.
func qualified(in string, e ast.Expr) string {
	switch x := e.(type) {
	case *ast.StarExpr:
		return qualified(in, x.X)
	case *ast.SelectorExpr:
		return x.X.(*ast.Ident).Name + "." + x.Sel.Name
	case *ast.Ident:
		return in + "." + x.Name
	}
	return ""
}

// kind is what a value is in JSON.
func (t types) kind(in string, e ast.Expr) (kind, refers string) {
	switch x := e.(type) {
	case *ast.StarExpr:
		kind, refers = t.kind(in, x.X)
		return kind + " or null", refers
	case *ast.ArrayType:
		kind, refers = t.kind(in, x.Elt)
		return "array of " + strings.TrimSuffix(kind, " or null"), refers
	case *ast.MapType:
		kind, refers = t.kind(in, x.Value)
		return "object of " + strings.TrimSuffix(kind, " or null") + " by number", refers
	}
	if basic, ok := basics[fmt.Sprint(e)]; ok {
		return basic, ""
	}
	name := qualified(in, e)
	d := t[name]
	if d == nil {
		return name, ""
	}
	if _, ok := d.expr.(*ast.StructType); !ok {
		return t.kind(d.name, d.expr)
	}
	return title(name), name
}

// figures are those of a recording that may be null, by their names: report.StatJSON decides that
// as it is written.
var figures = mayBeNull(report.StatJSON{Stat: query.Stat{Paths: 1}})

func mayBeNull(nothingKnown any) map[string]bool {
	text, err := json.Marshal(nothingKnown)
	if err != nil {
		panic(err)
	}
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		panic(err)
	}
	null := map[string]bool{}
	for name, value := range object {
		null[name] = value == nil
	}
	return null
}

var basics = map[string]string{
	"string": "text", "bool": "boolean", "float64": "number",
	"int": "integer", "int64": "integer", "uint32": "integer", "uint64": "integer",
}

// title is what the page calls the objects of a type.
func title(typeName string) string {
	_, name, _ := strings.Cut(typeName, ".")
	name = strings.TrimSuffix(name, "JSON")
	return strings.ToUpper(name[:1]) + name[1:]
}
