// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/app/console/marked"
)

//go:embed templates
var templateFiles embed.FS

// templates are the parsed pages: each is the layout and the shared parts with one file that defines "main".
type templates map[string]*template.Template

// shared are the files that every page has.
var shared = []string{"layout.html", "icons.html", "parts.html"}

// parseTemplates parses the pages. In them {{flag}} follows a command that reads the store.
func parseTemplates(flag string) (templates, error) {
	base := template.New("console").Option("missingkey=error").Funcs(template.FuncMap{"flag": func() marked.Plain { return marked.Spelled(flag) }})
	for _, name := range shared {
		if err := parseInto(base, name); err != nil {
			return nil, err
		}
	}
	list, err := templateFiles.ReadDir("templates")
	if err != nil {
		return nil, err
	}
	out := templates{}
	for _, f := range list {
		name := strings.TrimSuffix(f.Name(), ".html")
		t, err := base.Clone()
		if err != nil {
			return nil, err
		}
		if !slices.Contains(shared, f.Name()) {
			if err := parseInto(t, f.Name()); err != nil {
				return nil, err
			}
			out[name] = t
		}
	}
	return out, nil
}

func parseInto(t *template.Template, name string) error {
	b, err := templateFiles.ReadFile(path.Join("templates", name))
	if err != nil {
		return err
	}
	if _, err = t.New(name).Parse(string(b)); err != nil {
		return fmt.Errorf("template %s: %w", name, err)
	}
	return nil
}

// A view is what a template shows. Its name is that of the template, without the ending.
type view interface{ template() string }

// A frameView is what every page has around its view.
type frameView struct {
	Title    Own
	Style    Path
	Icon     Path
	Script   Path
	Rail     []railView
	SignedIn bool
	Who      marked.Name
	Role     Own
	Find     bool         // there is a page that finds
	Query    marked.Plain // what the person looks for
	Lines    []lineView   // how the gateway is
	View     view
}

type railView struct {
	Path Path
	Word Own
	Icon Own
	Key  Own
	Here bool
}

// page returns the page of a view.
func page(title Own, v view) answer { return pageAnswer{http.StatusOK, title, v} }

type pageAnswer struct {
	status int
	title  Own
	view   view
}

func (p pageAnswer) write(c *Console, w http.ResponseWriter, q *request) {
	f := frameView{Title: p.title, Style: c.files.path("console.css"), Icon: c.files.path("icon.svg"), Script: c.files.path("console.js"), View: p.view,
		SignedIn: q.who.Role >= Viewer, Find: q.who.Role >= Viewer && c.has(findPath)}
	if f.SignedIn {
		f.Who, f.Role, f.Rail = marked.Identifier(q.who.ID), q.who.Role.Name(), c.rail(q)
		f.Lines = c.lines(q)
		if f.Find {
			f.Query = marked.Spelled(q.URL.Query().Get("q"))
		}
	}
	var b bytes.Buffer
	err := fmt.Errorf("no template %s", p.view.template())
	if t := c.views[p.view.template()]; t != nil {
		err = t.ExecuteTemplate(&b, "layout", f)
	}
	if err != nil { // a mistake in a page of ours
		c.opt.Log.Error("console: a page could not be written", "page", p.view.template(), "error", err)
		http.Error(w, "This page could not be written. The log of the program says why.", http.StatusInternalServerError)
		return
	}
	q.endWork() // the client may take long to read the page
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(p.status)
	if q.Method != http.MethodHead {
		_, _ = w.Write(b.Bytes())
	}
}

// findPath is the page that the find box asks.
const findPath = "records"

// seeOther leads to a page after an action.
func seeOther(to Path) answer { return redirect(to) }

type redirect Path

func (p redirect) write(_ *Console, w http.ResponseWriter, q *request) {
	w.Header().Set("Location", string(p))
	w.WriteHeader(http.StatusSeeOther)
}
