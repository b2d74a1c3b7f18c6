// SPDX-License-Identifier: Apache-2.0

package console

import (
	"errors"
	"strings"

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
	AsOf    Own
	Rows    []recordRow
	First   Path
	Next    Path
	Partial bool
	Same    marked.Plain
	Journal Path // of this machine, for those who may see it
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

// recordsPath is the page of the records that a filter selects.
func recordsPath(f index.Filter) Path { return pathTo(findPath, "q", f.String()) }

// recordPath is the page of one record.
func recordPath(id ledger.ID) Path { return pathTo(findPath + "/" + id.String()) }

func (c *Console) records(q *request) answer {
	if c.opt.Ledger == nil && c.readsJournal(q.who) {
		return seeOther(pathTo(journalPath))
	}
	if c.opt.Ledger == nil {
		return missing("Records", "No ledger is kept here.", "Decisions are records where evidence is on: evidence: {mode: best-effort} in the configuration, or --evidence of wrap.", "pellucid wrap --evidence best-effort")
	}
	form := q.URL.Query()
	text := form.Get("q")
	v := recordsView{Query: marked.Spelled(text)}
	if c.readsJournal(q.who) {
		v.Journal = pathTo(journalPath)
	}
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
	err = c.opt.Ledger.View(q.Context(), func(x *storage.View) error {
		if none {
			v.status(x)
			v.Shown = count(0)
			return nil
		}
		return v.read(x, asked, f, p)
	})
	if err != nil {
		return failed(err)
	}
	return page("Records", v)
}

func (v *recordsView) status(x *storage.View) {
	if n := x.Status.Behind(); n > 0 {
		v.Behind = counted(n, "record")
	}
	v.Missing = x.Status.KeyMissing
	v.AsOf = count(x.Status.Indexed)
}

// read fills the view. asked is the filter as the person wrote it, f the one that says what they may see.
func (v *recordsView) read(x *storage.View, asked, f index.Filter, p storage.Page) error {
	v.status(x)
	v.Missing = v.Missing && f.Personal()
	list, err := x.List(&f, p)
	if err != nil {
		return err
	}
	v.Shown, v.Partial = count(int64(len(list.Rows))), list.Partial
	for i := range list.Rows {
		v.Rows = append(v.Rows, newRecordRow(&list.Rows[i]))
	}
	if p.After != (storage.Cursor{}) {
		v.First = recordsPath(asked)
	}
	if list.Next != (storage.Cursor{}) {
		v.Next = pathTo(findPath, "q", asked.String(), "after", list.Next.String())
	}
	v.Same = marked.Spelled(strings.TrimSpace("pellucid ledger show " + asked.String())) // no term needs a quote
	return nil
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
