// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/app/console/marked"
	"github.com/pellucid-mcp/pellucid/record/index"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/storage"
)

var recordsRoutes = []route{
	{pattern: "GET " + findPath, least: Viewer, handle: (*Console).records, rail: entry{place: 50, word: "Records", icon: "record", key: "l"}},
}

// perPage is the number of rows of a page.
const perPage = 50

// errNotYours: the filter names a server that the person may not see.
var errNotYours = errors.New("console: a server that the person may not see")

// within restricts a filter to the servers of the person. none reports that it selects nothing.
func (p Person) within(f *index.Filter) (none bool, err error) {
	if p.AllServers {
		return false, nil
	}
	for _, s := range f.Servers {
		if !p.Sees(s) {
			return true, errNotYours
		}
	}
	if len(f.Servers) == 0 {
		f.Servers = p.Servers
	}
	return len(f.Servers) == 0, nil
}

type recordsView struct {
	Query   marked.Plain
	Wrong   marked.Text // why the filter cannot be read
	Bad     bool
	Behind  Own  // how many records the index does not have yet; "": it has all
	Missing bool // the key of some records was retired
	Shown   Own
	Total   Own
	AsOf    Own
	Newer   Own
	Rows    []recordRow
	First   Path
	Next    Path
	Partial bool
	Narrow  []facetView
	Drop    []dropView // terms whose removal would show more
	Same    marked.Plain
}

func (recordsView) template() string { return "records" }

type recordRow struct {
	Index   Own
	At      Own
	Kind    Own
	Server  marked.Name
	Tool    marked.Name
	HasTool bool
	Of      bool // it has a server
	Verdict verdictView
	Codes   []codeView
	ID      marked.Name
	To      Path
}

type verdictView struct {
	Class Own // of the style sheet; "": none
	Icon  Own
	Word  marked.Name
	Has   bool
}

type codeView struct {
	To   Path
	Word Own
	N    Own
}

type facetView struct {
	Title Own
	Rows  []facetRow
}

type facetRow struct {
	To   Path
	Name marked.Name
	N    Own
}

type dropView struct {
	To   Path
	Term marked.Plain
}

// recordsPath is the page of the records that a filter selects.
func recordsPath(f index.Filter) Path { return pathTo(findPath, "q", f.String()) }

// recordPath is the page of one record.
func recordPath(id ledger.ID) Path { return pathTo(findPath + "/" + id.String()) }

func (c *Console) records(q *request) answer {
	if c.opt.Ledger == nil {
		return missing("Records", "No ledger is kept here.", "Decisions are records where evidence is on: evidence: {mode: best-effort} in the configuration, or --evidence of wrap.", "pellucid wrap --evidence best-effort")
	}
	form := q.URL.Query()
	text := form.Get("q")
	v := recordsView{Query: marked.Spelled(text)}
	f, err := index.Parse(text, q.now)
	if err != nil {
		v.Wrong, v.Bad = marked.Of(err.Error()), true
		return page("Records", v)
	}
	if f.ID != (ledger.ID{}) && f.String() == "id:"+f.ID.String() {
		return seeOther(recordPath(f.ID))
	}
	asked := f
	none, err := q.who.within(&f)
	if err != nil {
		return notYours()
	}
	p := storage.Page{Limit: perPage}
	if at := form.Get("after"); at != "" {
		var ok bool
		if p.After, ok = storage.ParseCursor(at); !ok {
			return notFound()
		}
	}
	if n := form.Get("asof"); n != "" {
		if p.AsOf, err = strconv.ParseInt(n, 10, 64); err != nil || p.AsOf <= 0 {
			return notFound()
		}
	}
	err = c.opt.Ledger.View(q.Context(), func(x *storage.View) error {
		if none {
			v.status(x, p)
			v.Shown, v.Total = count(0), count(0)
			return nil
		}
		return v.read(x, q.who, asked, f, p)
	})
	if err != nil {
		return failed(err)
	}
	return page("Records", v)
}

func (v *recordsView) status(x *storage.View, p storage.Page) {
	if n := x.Status.Behind(); n > 0 {
		v.Behind = counted(n, "record")
	}
	v.Missing = x.Status.KeyMissing
	v.AsOf = count(cmp.Or(p.AsOf, x.Status.Indexed))
}

// read fills the view. asked is the filter as the person wrote it, f the one that says what they may see.
func (v *recordsView) read(x *storage.View, who Person, asked, f index.Filter, p storage.Page) error {
	if p.AsOf == 0 || p.AsOf > x.Status.Indexed {
		p.AsOf = x.Status.Indexed
	}
	v.status(x, p)
	v.Missing = v.Missing && !f.Plain()
	list, err := x.List(&f, p)
	if err != nil {
		return err
	}
	total, err := x.Count(&f)
	if err != nil {
		return err
	}
	newer, err := x.Newer(&f, p.AsOf)
	if err != nil {
		return err
	}
	if !newer.More {
		total.N -= newer.N
	}
	v.Total = countOf(total)
	if newer.N > 0 || newer.More {
		v.Newer = countOf(newer)
	}
	v.Shown, v.Partial = count(int64(len(list.Rows))), list.Partial
	for i := range list.Rows {
		v.Rows = append(v.Rows, newRecordRow(&list.Rows[i]))
	}
	v.First = recordsPath(asked)
	if list.Next != (storage.Cursor{}) {
		v.Next = pathTo(findPath, "q", asked.String(), "after", list.Next.String(), "asof", strconv.FormatInt(p.AsOf, 10))
	}
	v.Same = marked.Spelled(strings.TrimSpace("pellucid ledger show " + asked.String())) // no term needs a quote
	if len(list.Rows) == 0 && p.After == (storage.Cursor{}) {
		return v.drops(x, who, asked)
	}
	return v.narrow(x, asked, f)
}

func newRecordRow(r *index.Row) recordRow {
	out := recordRow{Index: count(r.Index), At: moment(r.Time), Kind: kindName(r.Kind), Of: r.Server != "", HasTool: r.Tool != "",
		Verdict: newVerdict(r.Verdict), ID: marked.Identifier(r.ID.String()), To: recordPath(r.ID)}
	if out.Of {
		out.Server = marked.Identifier(r.Server)
	}
	if out.HasTool {
		out.Tool = marked.Identifier(r.Tool)
	}
	for _, c := range r.Codes {
		out.Codes = append(out.Codes, codeView{recordsPath(index.Filter{Code: c.Code}), codeName(c.Code), count(c.N)})
	}
	return out
}

// verdictLooks are the verdicts about a message that have a colour. The word alone is enough.
var verdictLooks = map[string]verdictView{"changed": {Class: "v-changed", Icon: "changed"}, "withheld": {Class: "v-held", Icon: "held"}, "dropped": {Class: "v-denied", Icon: "denied"}}

func newVerdict(verdict string) verdictView {
	if verdict == "" {
		return verdictView{}
	}
	v := verdictLooks[verdict]
	v.Word, v.Has = marked.Identifier(verdict), true
	return v
}

// facets are the terms that narrow a list.
var facets = []struct {
	title Own
	of    func(*storage.Sum) string
	set   func(*index.Filter, string)
	given func(*index.Filter) bool
}{
	{"Verdict", func(s *storage.Sum) string { return s.Verdict },
		func(f *index.Filter, s string) { f.Verdicts = []string{s} }, func(f *index.Filter) bool { return len(f.Verdicts) == 1 }},
	{"Kind", func(s *storage.Sum) string { return string(s.Kind) },
		func(f *index.Filter, s string) { f.Kinds = []ledger.Kind{ledger.Kind(s)} }, func(f *index.Filter) bool { return len(f.Kinds) == 1 }},
	{"Server", func(s *storage.Sum) string { return s.Server },
		func(f *index.Filter, s string) { f.Servers = []string{s} }, func(f *index.Filter) bool { return len(f.Servers) == 1 }},
}

// mostFacets bounds the values of a term that are shown.
const mostFacets = 12

// narrow says by which terms the list can be narrowed, with how many records each leaves.
func (v *recordsView) narrow(x *storage.View, asked, f index.Filter) error {
	if !f.Plain() {
		return nil
	}
	sums, err := x.Sums(&f, storage.By{Verdict: true, Kind: true, Server: true})
	if err != nil {
		return err
	}
	for _, facet := range facets {
		if facet.given(&f) {
			continue
		}
		by := map[string]int64{}
		for i := range sums {
			if s := facet.of(&sums[i]); s != "" { // a record without one has no term for it
				by[s] += sums[i].N
			}
		}
		out := facetView{Title: facet.title}
		for _, s := range largest(by, mostFacets) {
			to := asked
			facet.set(&to, s)
			out.Rows = append(out.Rows, facetRow{recordsPath(to), marked.Identifier(s), count(by[s])})
		}
		if len(out.Rows) > 1 {
			v.Narrow = append(v.Narrow, out)
		}
	}
	return nil
}

// largest are the keys with the greatest numbers.
func largest(m map[string]int64, n int) []string {
	keys := slices.Collect(maps.Keys(m))
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(-cmp.Compare(m[a], m[b]), cmp.Compare(a, b)) })
	return keys[:min(n, len(keys))]
}

// drops finds the terms without which the list would not be empty.
func (v *recordsView) drops(x *storage.View, who Person, asked index.Filter) error {
	terms := splitTerms(asked.String())
	for i, term := range terms {
		text := joinTerms(slices.Delete(slices.Clone(terms), i, i+1))
		less, err := index.Parse(text, time.Time{}) // what String has written has no ages
		if err != nil {
			continue
		}
		with := less
		if none, err := who.within(&with); none || err != nil { // what others have must not show in what is offered
			continue
		}
		n, err := x.Count(&with)
		if err != nil {
			return err
		}
		if n.N > 0 {
			v.Drop = append(v.Drop, dropView{recordsPath(less), marked.Spelled(term)})
		}
	}
	return nil
}
