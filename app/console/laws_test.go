// SPDX-License-Identifier: Apache-2.0

package console

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// forbidden lists what no template may have.
var forbidden = []struct {
	what string
	is   *regexp.Regexp
}{
	{"a style attribute", regexp.MustCompile(`(?i)\sstyle\s*=`)},
	{"a style element", regexp.MustCompile(`(?i)<style`)},
	{"an inline handler", regexp.MustCompile(`(?i)\son[a-z]+\s*=`)},
	{"an inline script", regexp.MustCompile(`(?i)<script(?:\s+type="module")?(?:\s+src="\{\{[^}]*\}\}")?\s*>\s*[^<\s]`)},
	{"a script without a file of ours", regexp.MustCompile(`(?i)<script(?:\s+type="module")?\s*>`)},
	{"a script from elsewhere", regexp.MustCompile(`(?i)<script[^>]*src="[^{]`)},
	{"an address of another site", regexp.MustCompile(`(?i)(?:src|href|action|formaction|data|poster)\s*=\s*"?\s*(?:[a-z]+:|//)`)},
	{"a frame or plug-in", regexp.MustCompile(`(?i)<(?:iframe|object|embed|base|meta\s+http-equiv)`)},
	{"an attribute without quotes that is filled", regexp.MustCompile(`=\{\{`)},
	{"a form that names no target of ours", regexp.MustCompile(`(?i)<form(?:\s[^>]*)?\saction="[^/{]`)},
	{"a comment", regexp.MustCompile(`<!--`)},
}

func templateMistakes(text string) (mistakes []string) {
	for _, f := range forbidden {
		if at := f.is.FindString(text); at != "" {
			mistakes = append(mistakes, f.what+": "+at)
		}
	}
	return mistakes
}

func TestTemplatesHaveNoInline(t *testing.T) {
	t.Parallel()
	files, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil || len(files) < 4 {
		t.Fatalf("%d templates, %v", len(files), err)
	}
	for _, name := range files {
		b, err := templateFiles.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range templateMistakes(string(b)) {
			t.Errorf("%s has %s", name, m)
		}
	}
}

func TestTemplateMistakesCanFail(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`<p style="x">`, `<style>`, `<a onclick="x">`, `<script>x()</script>`, `<script src="/x.js"></script>`, `<script type="module">`,
		`<a href="https://x.example">`, `<img src="//x">`, `<iframe>`, `<p class={{.X}}>`, `<meta http-equiv="x">`, `<!-- x -->`, `<form method="post" action="x">`,
	} {
		if len(templateMistakes(text)) == 0 {
			t.Errorf("%s is allowed", text)
		}
	}
	if m := templateMistakes(`<script type="module" src="{{.Script}}"></script><a href="{{.To}}" class="on">x</a>`); m != nil {
		t.Errorf("%q", m)
	}
}

// goFiles are the files of a folder without tests.
func goFiles(t *testing.T, dir string) (*token.FileSet, map[string]*ast.File) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	set, out := token.NewFileSet(), map[string]*ast.File{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = f
	}
	return set, out
}

// shown are the types of other packages that a field of a view may have.
var shown = []string{"marked.Text", "marked.Name", "marked.Plain"}

// plain are the built-in types that a field may have: none of them holds a text.
var plain = []string{"bool", "int", "int8", "int16", "int32", "int64", "uint", "uint8", "uint16", "uint32", "uint64", "float32", "float64"}

// viewMistakes returns the fields of views that could hold a plain text: views are the types that have a
// method template, frameView and all types that these are made of.
func viewMistakes(files map[string]*ast.File) (mistakes []string, views int) {
	types, todo := map[string]ast.Expr{}, []string{"frameView"}
	for _, f := range files {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if ts, ok := s.(*ast.TypeSpec); ok {
						types[ts.Name.Name] = ts.Type
					}
				}
			case *ast.FuncDecl:
				if d.Name.Name == "template" && d.Recv != nil {
					todo = append(todo, strings.TrimPrefix(name(d.Recv.List[0].Type), "*"))
				}
			}
		}
	}
	seen := map[string]bool{"Own": true, "Path": true, "view": true}
	for len(todo) > 0 {
		of := todo[0]
		if todo = todo[1:]; seen[of] {
			continue
		}
		seen[of] = true
		views++
		var check func(at string, e ast.Expr)
		check = func(at string, e ast.Expr) {
			switch e := e.(type) {
			case *ast.StructType:
				for _, f := range e.Fields.List {
					field := "embedded"
					if len(f.Names) > 0 {
						field = f.Names[0].Name
					}
					check(at+"."+field, f.Type)
				}
			case *ast.ArrayType:
				check(at, e.Elt)
			case *ast.StarExpr:
				check(at, e.X)
			case *ast.Ident:
				switch {
				case slices.Contains(plain, e.Name):
				case types[e.Name] != nil:
					todo = append(todo, e.Name)
				default:
					mistakes = append(mistakes, at+" has the type "+e.Name)
				}
			default:
				if !slices.Contains(shown, name(e)) {
					mistakes = append(mistakes, at+" has the type "+name(e))
				}
			}
		}
		check(of, types[of])
	}
	return mistakes, views
}

// name spells simple types.
func name(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return "*" + name(e.X)
	case *ast.SelectorExpr:
		return name(e.X) + "." + e.Sel.Name
	case *ast.MapType:
		return "map"
	case *ast.InterfaceType:
		return "interface"
	case *ast.FuncType:
		return "func"
	}
	return "another type"
}

// TestViewsHoldNoPlainText: third-party text enters a page only as a value of package marked.
func TestViewsHoldNoPlainText(t *testing.T) {
	t.Parallel()
	_, files := goFiles(t, ".")
	mistakes, views := viewMistakes(files)
	for _, m := range mistakes {
		t.Errorf("%s: use Own for our own words, and a type of package marked for what a third party wrote", m)
	}
	if views < 3 {
		t.Errorf("only %d views were looked at", views)
	}
}

func TestViewMistakesCanFail(t *testing.T) {
	t.Parallel()
	src := `package p
type Own int
type frameView struct { A Own; B []*partView }
type partView struct { Name string; Any any; M map[string]Own; E error; T template.HTML; OK marked.Text; N int }
type xView struct { Raw []byte; F func() string; By []other.Thing }
func (xView) template() string { return "x" }`
	f, err := parser.ParseFile(token.NewFileSet(), "p.go", src, 0)
	if err != nil {
		t.Fatal(err)
	}
	mistakes, _ := viewMistakes(map[string]*ast.File{"p.go": f})
	want := []string{"xView.Raw has the type byte", "xView.F has the type func", "xView.By has the type other.Thing", "partView.Name has the type string",
		"partView.Any has the type any", "partView.M has the type map", "partView.E has the type error", "partView.T has the type template.HTML"}
	slices.Sort(mistakes)
	slices.Sort(want)
	if !slices.Equal(mistakes, want) {
		t.Errorf("got %q\nwant %q", mistakes, want)
	}
}

// makers are the files that may make Own and Path of what is not a constant: they hold functions whose
// results are numbers, times, names of closed lists and percent-encoded addresses.
var makers = []string{"words.go", "words_xray.go", "assets.go"}

// TestOwnWordsAreOurs: outside of these files a conversion to Own or Path takes a constant.
func TestOwnWordsAreOurs(t *testing.T) {
	t.Parallel()
	set, files := goFiles(t, ".")
	for path, f := range files {
		if slices.Contains(makers, path) {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 1 {
				return true
			}
			if id, ok := call.Fun.(*ast.Ident); ok && (id.Name == "Own" || id.Name == "Path") {
				if _, literal := call.Args[0].(*ast.BasicLit); !literal {
					t.Errorf("%s: %s of what is not a literal", set.Position(call.Pos()), id.Name)
				}
			}
			return true
		})
	}
}

// htmlTypes are the types of html/template that are not escaped.
var htmlTypes = []string{"HTML", "HTMLAttr", "JS", "JSStr", "CSS", "URL", "Srcset"}

// TestOnlyMarkedMakesHTML: no other package of the console names a type that html/template does not escape.
func TestOnlyMarkedMakesHTML(t *testing.T) {
	t.Parallel()
	looked := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || path == "marked" {
			return err
		}
		set, files := goFiles(t, path)
		for _, f := range files {
			looked++
			ast.Inspect(f, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok && name(s.X) == "template" && slices.Contains(htmlTypes, s.Sel.Name) {
					t.Errorf("%s: template.%s", set.Position(s.Pos()), s.Sel.Name)
				}
				return true
			})
		}
		return nil
	})
	if err != nil || looked < 8 {
		t.Errorf("%d files, %v", looked, err)
	}
}

// TestRoutes: each route has a method, a role and a handler, and an action needs a person.
func TestRoutes(t *testing.T) {
	t.Parallel()
	if _, err := New(Options{}); err != nil {
		t.Fatal(err)
	}
	for _, r := range routes() {
		method, _, _ := strings.Cut(r.pattern, " ")
		if method != "GET" && method != "POST" {
			t.Errorf("%s: another method than GET and POST", r.pattern)
		}
		if r.rail.word != "" && (method != "GET" || strings.Contains(r.pattern, "{")) {
			t.Errorf("%s: a page of the rail is a GET without parameters", r.pattern)
		}
	}
}
