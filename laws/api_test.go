// SPDX-License-Identifier: Apache-2.0

package laws_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/constant"
	"go/doc"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// public lists the packages that programs of other modules may import. Their
// exported API is written down in laws/api/, one file for each package. README lists the
// same packages, and each of them says in its comment that it is public.
const public = `text/finding text/scrub text/href text/frame grounding/attest grounding/corpus record/ledger`

// publicSentence stands in the comment of every public package, and of no other.
const publicSentence = "It is part of the public API"

// publicModules are the other modules whose types the exported API may name.
var publicModules = []string{"golang.org/x/mod/sumdb/tlog"}

func apiFile(pkg string) string { return "laws/api/" + strings.ReplaceAll(pkg, "/", ".") + ".txt" }

// loadPublic reads the types of the public packages from the export data of the build.
func loadPublic(t *testing.T) []*types.Package {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}"}
	for _, pkg := range strings.Fields(public) {
		args = append(args, "./"+pkg)
	}
	var stderr bytes.Buffer
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		files[path] = file
	}
	imp := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(files[path]) })
	var pkgs []*types.Package
	for _, pkg := range strings.Fields(public) {
		p, err := imp.Import(module + "/" + pkg)
		if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
	return pkgs
}

// TestDocsAPI holds laws/api/ against the exported API of the public packages. With
// PELLUCID_UPDATE_DOCS set it rewrites a stale file, and still fails.
func TestDocsAPI(t *testing.T) {
	want := map[string]bool{}
	for _, p := range loadPublic(t) {
		name := apiFile(strings.TrimPrefix(p.Path(), module+"/"))
		want[name] = true
		fresh := strings.Join(surface(p), "\n") + "\n"
		if fresh == string(readFile(t, name)) {
			continue
		}
		if os.Getenv("PELLUCID_UPDATE_DOCS") == "" {
			t.Errorf("the exported API of %s is not what %s says: run 'make docs' where the change is meant", p.Path(), name)
			continue
		}
		if err := os.MkdirAll(rooted("laws/api"), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(rooted(name), []byte(fresh), 0o666); err != nil {
			t.Fatal(err)
		}
		t.Errorf("%s was stale and has been rewritten", name)
	}
	there, err := fs.Glob(os.DirFS(root), "laws/api/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range there {
		if !want[name] {
			t.Errorf("%s is not the file of a public package", name)
		}
	}
}

// TestPublicNamesPublic: who imports a public package needs no package that is not.
func TestPublicNamesPublic(t *testing.T) {
	for _, p := range loadPublic(t) {
		for _, why := range foreign(p) {
			t.Errorf("%s: %s", p.Path(), why)
		}
	}
}

// TestPublicIsSaid holds README and the package comments against the list, and wants
// a runnable example with its output in each public package.
func TestPublicIsSaid(t *testing.T) {
	isPublic := strings.Fields(public)
	_, section, found := strings.Cut(string(readFile(t, "README.md")), "\n## As a library\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var listed []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z/]+)` \\|").FindAllStringSubmatch(section, -1) {
		listed = append(listed, m[1])
	}
	if !found || !slices.Equal(listed, isPublic) {
		t.Errorf("README.md lists %q as a library, want %q", listed, isPublic)
	}
	examples := map[string]bool{}
	for _, f := range goFiles(t) {
		dir := filepath.ToSlash(filepath.Dir(f.path))
		if strings.HasSuffix(f.path, "_test.go") {
			examples[dir] = examples[dir] || slices.ContainsFunc(doc.Examples(f.ast), func(e *doc.Example) bool { return e.Output != "" })
			continue
		}
		if f.ast.Doc == nil {
			continue
		}
		text := strings.Join(strings.Fields(f.ast.Doc.Text()), " ")
		if says := strings.Contains(text, publicSentence); says != slices.Contains(isPublic, dir) {
			t.Errorf("%s: the package comment says that it is public: %v, want %v", f.path, says, !says)
		}
	}
	for _, pkg := range isPublic {
		if !examples[pkg] {
			t.Errorf("%s is public and has no example with output", pkg)
		}
	}
}

// surface lists the exported API of p, a line for each name, sorted.
func surface(p *types.Package) []string {
	var out []string
	line := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for _, name := range p.Scope().Names() {
		obj := p.Scope().Lookup(name)
		if !obj.Exported() {
			continue
		}
		switch obj := obj.(type) {
		case *types.Const:
			line("const %s %s = %s", name, spell(p, obj.Type()), value(obj.Val()))
		case *types.Var:
			line("var %s %s", name, spell(p, obj.Type()))
		case *types.Func:
			line("func %s%s", name, signature(p, obj.Signature()))
		case *types.TypeName:
			if obj.IsAlias() {
				line("type %s = %s", name, spell(p, types.Unalias(obj.Type())))
				continue
			}
			out = append(out, typeLines(p, obj)...)
		}
	}
	slices.Sort(out)
	return out
}

// typeLines lists a type, its exported fields, and its exported methods, also those of
// embedded types.
func typeLines(p *types.Package, obj *types.TypeName) []string {
	name := obj.Name()
	var out []string
	switch u := obj.Type().Underlying().(type) {
	case *types.Struct:
		kind := "struct"
		for f := range u.Fields() {
			switch {
			case !f.Exported():
				kind = "struct with unexported fields"
			case f.Embedded():
				out = append(out, fmt.Sprintf("field %s.%s embedded", name, spell(p, f.Type())))
			default:
				out = append(out, fmt.Sprintf("field %s.%s %s", name, f.Name(), spell(p, f.Type())))
			}
		}
		out = append(out, fmt.Sprintf("type %s %s", name, kind))
	case *types.Interface:
		out = append(out, fmt.Sprintf("type %s interface", name))
		for m := range u.Methods() {
			out = append(out, fmt.Sprintf("method %s.%s%s", name, m.Name(), signature(p, m.Signature())))
		}
		return out
	default:
		out = append(out, fmt.Sprintf("type %s %s", name, spell(p, u)))
	}
	byValue := types.NewMethodSet(obj.Type())
	for sel := range types.NewMethodSet(types.NewPointer(obj.Type())).Methods() {
		if !sel.Obj().Exported() {
			continue
		}
		receiver := name
		if byValue.Lookup(p, sel.Obj().Name()) == nil {
			receiver = "*" + name
		}
		out = append(out, fmt.Sprintf("method (%s) %s%s", receiver, sel.Obj().Name(), signature(p, sel.Obj().(*types.Func).Signature())))
	}
	return out
}

// spell writes a type, with the paths of packages other than p.
func spell(p *types.Package, typ types.Type) string {
	return types.TypeString(typ, func(q *types.Package) string {
		if q == p {
			return ""
		}
		return strings.TrimPrefix(q.Path(), module+"/")
	})
}

// signature writes parameters and results without their names, which callers do not see.
func signature(p *types.Package, sig *types.Signature) string {
	bare := func(tuple *types.Tuple) *types.Tuple {
		var vars []*types.Var
		for v := range tuple.Variables() {
			vars = append(vars, types.NewParam(token.NoPos, nil, "", v.Type()))
		}
		return types.NewTuple(vars...)
	}
	sig = types.NewSignatureType(nil, nil, slices.Collect(sig.TypeParams().TypeParams()), bare(sig.Params()), bare(sig.Results()), sig.Variadic())
	return strings.TrimPrefix(spell(p, sig), "func")
}

func value(v constant.Value) string {
	if v.Kind() == constant.String {
		return strconv.QuoteToASCII(constant.StringVal(v))
	}
	return v.ExactString()
}

// foreign lists what the exported API of p names that an importer cannot name: types
// of packages that are not public, and unexported types of p.
func foreign(p *types.Package) []string {
	w := &apiWalk{pkg: p}
	for _, name := range p.Scope().Names() {
		obj := p.Scope().Lookup(name)
		if !obj.Exported() {
			continue
		}
		w.at = name
		named, is := obj.Type().(*types.Named)
		if _, isType := obj.(*types.TypeName); !isType || !is || obj.(*types.TypeName).IsAlias() {
			w.walk(obj.Type())
			continue
		}
		for param := range named.TypeParams().TypeParams() {
			w.walk(param.Constraint())
		}
		w.walk(named.Underlying())
		for sel := range types.NewMethodSet(types.NewPointer(named)).Methods() {
			if sel.Obj().Exported() {
				w.at = name + "." + sel.Obj().Name()
				w.walk(sel.Obj().(*types.Func).Signature())
			}
		}
	}
	slices.Sort(w.faults)
	return slices.Compact(w.faults)
}

// apiWalk walks the types that an exported name is made of, as far as the next named type.
type apiWalk struct {
	pkg    *types.Package
	at     string // the exported name
	faults []string
}

func (w *apiWalk) name(obj *types.TypeName) {
	switch q := obj.Pkg(); {
	case q == nil:
	case q == w.pkg:
		if !obj.Exported() {
			w.faults = append(w.faults, w.at+" names "+obj.Name()+", which is not exported")
		}
	default:
		path, ours := strings.CutPrefix(q.Path(), module+"/")
		first, _, _ := strings.Cut(path, "/")
		allowed := strings.Fields(public)
		if !ours {
			allowed = publicModules
		}
		if (ours || strings.Contains(first, ".")) && !slices.Contains(allowed, path) {
			w.faults = append(w.faults, w.at+" names "+path+"."+obj.Name()+", which is not public")
		}
	}
}

func (w *apiWalk) walk(typ types.Type) {
	switch typ := typ.(type) {
	case *types.Alias:
		w.name(typ.Obj())
		w.walk(typ.Rhs())
	case *types.Named:
		w.name(typ.Obj())
		for arg := range typ.TypeArgs().Types() {
			w.walk(arg)
		}
	case *types.Pointer:
		w.walk(typ.Elem())
	case *types.Slice:
		w.walk(typ.Elem())
	case *types.Array:
		w.walk(typ.Elem())
	case *types.Chan:
		w.walk(typ.Elem())
	case *types.Map:
		w.walk(typ.Key())
		w.walk(typ.Elem())
	case *types.Signature:
		for param := range typ.TypeParams().TypeParams() {
			w.walk(param.Constraint())
		}
		for v := range typ.Params().Variables() {
			w.walk(v.Type())
		}
		for v := range typ.Results().Variables() {
			w.walk(v.Type())
		}
	case *types.Struct:
		for f := range typ.Fields() {
			if f.Exported() || f.Embedded() {
				w.walk(f.Type())
			}
		}
	case *types.Interface:
		for m := range typ.ExplicitMethods() {
			w.walk(m.Signature())
		}
		for e := range typ.EmbeddedTypes() {
			w.walk(e)
		}
	case *types.Union:
		for term := range typ.Terms() {
			w.walk(term.Type())
		}
	}
}

// TestPublicCanFail proves that the checks above see what they look for.
func TestPublicCanFail(t *testing.T) {
	const other = `package ucd
type T struct{}
func (T) M() {}`
	const src = `package p
import ("github.com/pellucid-mcp/pellucid/text/ucd"; "example.org/m")
type own struct{ N int }
type Struct struct { F map[string][]ucd.T; hidden ucd.T }
type Embeds struct { own }
type Face interface { M(func() *ucd.T) }
type Alias = ucd.T
type Generic[E interface{ ucd.T }] struct{}
const C ucd.I = 1
var V m.T
func F(a, b int) (c own) { return c }
func (*Struct) Method(chan ucd.T) error { return nil }
func (Struct) inner(ucd.T) {}
func Fine(s Struct, f Face) {}`
	fset := token.NewFileSet()
	check := func(path, src string, imp types.Importer) *types.Package {
		f, err := parser.ParseFile(fset, "", src, 0)
		if err != nil {
			t.Fatal(err)
		}
		p, err := (&types.Config{Importer: imp}).Check(path, fset, []*ast.File{f}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	known := imports{
		module + "/text/ucd": check(module+"/text/ucd", other+"\ntype I int", nil),
		"example.org/m":      check("example.org/m", "package m\ntype T int", nil),
	}
	p := check(module+"/text/scrub", src, known)
	want := []string{
		"Alias names text/ucd.T, which is not public",
		"C names text/ucd.I, which is not public",
		"Embeds names own, which is not exported",
		"F names own, which is not exported",
		"Face names text/ucd.T, which is not public",
		"Generic names text/ucd.T, which is not public",
		"Struct names text/ucd.T, which is not public",
		"Struct.Method names text/ucd.T, which is not public",
		"V names example.org/m.T, which is not public",
	}
	if got := foreign(p); !slices.Equal(got, want) {
		t.Errorf("foreign:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	wantLines := []string{
		"const C text/ucd.I = 1",
		"field Struct.F map[string][]text/ucd.T",
		"func F(int, int) own",
		"func Fine(Struct, Face)",
		"method (*Struct) Method(chan text/ucd.T) error",
		"method Face.M(func() *text/ucd.T)",
		"type Alias = text/ucd.T",
		"type Embeds struct with unexported fields",
		"type Face interface",
		"type Generic struct",
		"type Struct struct with unexported fields",
		"var V example.org/m.T",
	}
	if got := surface(p); !slices.Equal(got, wantLines) {
		t.Errorf("surface:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(wantLines, "\n"))
	}
}

// imports are packages by their path.
type imports map[string]*types.Package

func (i imports) Import(path string) (*types.Package, error) {
	if p := i[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("no package %s", path)
}
