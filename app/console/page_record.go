// SPDX-License-Identifier: Apache-2.0

package console

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/pellucid-mcp/pellucid/app/console/marked"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/index"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/storage"
)

var recordRoutes = []route{
	{pattern: "GET " + findPath + "/{id}", least: Viewer, handle: (*Console).record1},
	{pattern: "GET " + findPath + "/{id}/proof", least: Viewer, handle: (*Console).proof},
	{pattern: "GET " + findPath + "/{id}/case", least: Reviewer, handle: (*Console).exportCase},
}

type recordView struct {
	ID        marked.Name
	Row       recordRow
	Where     marked.Name
	Facts     []factView
	Codes     []codesView
	Subjects  []subjectView
	Erased    bool // the opening was erased, or was never here
	Matter    []recordRow
	Script    Path
	Proof     Path
	RawID     marked.Plain
	Origin    marked.Plain
	Same      marked.Plain
	Case      marked.Plain
	Export    Path // "": the person may not have the case
	SignedBy  marked.Name
	Item      Path           // of what was held; "": the queue does not have it, or the person may not see it
	Explained *explainedView // nil: the record is not explained
}

// An explainedView says in plain words what happened. Labels and names stand in its sentences.
type explainedView struct {
	Happened  []marked.Text
	Why       []marked.Text
	Delivered []marked.Text
	Since     []sinceView
	Do        []doView
	Notes     []marked.Text
}

type sinceView struct {
	At    Own
	Text  marked.Text
	By    marked.Name
	HasBy bool
}

type doView struct {
	Text    marked.Text
	Command marked.Plain
}

func (recordView) template() string { return "record" }

type factView struct {
	Name  Own
	Value marked.Name
	To    Path
}

type codesView struct {
	Name Own
	List []codeView
}

// A subjectView is a content that a record is about. The plain digest is shown to reviewers only.
type subjectView struct {
	Role   Own
	Salted marked.Plain
	Plain  marked.Plain
	To     Path
}

// entry reads the record of a request, if the person may see it.
func (c *Console) entry(q *request) (e sequence.Entry, st *ledger.Statement, not answer) {
	if c.opt.Ledger == nil {
		return e, nil, notFound()
	}
	id, err := ledger.ParseID(q.PathValue("id"))
	if err != nil {
		return e, nil, notFound()
	}
	e, err = c.opt.Ledger.Get(q.Context(), id)
	if errors.Is(err, ledger.ErrNotFound) && c.readsJournal(q.who) {
		if _, found, _ := c.findInJournal(id); found {
			return e, nil, seeOther(pathTo(journalPath + "/" + id.String()))
		}
	}
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return e, nil, state{status: http.StatusNotFound, title: "Not found", says: "No record of the log has this id.",
			why: "A record that was stored this moment comes into the log within a second. A decision of a wrap without a ledger stands in the journal of its machine.", command: "pellucid ledger show ID", stored: true}
	case err != nil:
		return e, nil, failed(err)
	}
	if st, err = ledger.UnverifiedStatement(e.Envelope); err != nil {
		return e, nil, state{status: http.StatusInternalServerError, title: "Not readable", says: "This record cannot be read: what the store has is not what was signed.",
			why: "The log must be verified.", command: "pellucid ledger verify", stored: true, kind: "denied"}
	}
	if !q.who.Sees(st.Server) {
		return e, nil, notYours()
	}
	return e, st, nil
}

// record1 is the page of one record.
func (c *Console) record1(q *request) answer {
	e, st, not := c.entry(q)
	if not != nil {
		return not
	}
	row := index.RowOf(e.Index, st, e.Opening)
	v := recordView{ID: marked.Identifier(st.ID.String()), RawID: marked.Spelled(st.ID.String()), Row: newRecordRow(&row),
		Script: c.files.path("proof.js"), Proof: pathTo(findPath + "/" + st.ID.String() + "/proof"),
		Same: marked.Spelled("pellucid explain --proof " + st.ID.String() + c.opt.Flag + " | pellucid ledger verify --proof /dev/stdin --key KEY"),
		Case: marked.Spelled("pellucid explain --case case.json " + st.ID.String() + c.opt.Flag)}
	if c.opt.Case != nil && q.who.Decides(st.Server) {
		v.Export = pathTo(findPath + "/" + st.ID.String() + "/case")
	}
	v.facts(st)
	v.subjects(st, e.Opening, q.who.Decides(st.Server))
	head, err := c.opt.Ledger.Head(q.Context())
	if err != nil {
		return failed(err)
	}
	v.Origin = marked.Spelled(head.Origin)
	if env, err := ledger.ParseEnvelope(e.Envelope); err == nil {
		v.SignedBy = marked.Identifier(env.KeyID)
	}
	if err := v.matter(q, c.opt.Ledger, st); err != nil {
		return failed(err)
	}
	if v.Item, err = c.itemOf(q, st); err != nil {
		return failed(err)
	}
	v.Explained = c.explainDecision(q, st.ID.String())
	return page("Record", v)
}

// itemOf is the page of the held item that a record is about.
func (c *Console) itemOf(q *request, st *ledger.Statement) (Path, error) {
	if c.opt.Queue == nil {
		return "", nil
	}
	id := st.ID
	if st.Of != (ledger.ID{}) {
		id = st.Of
	}
	items, err := c.opt.Queue.List(q.Context(), hold.Filter{ID: id.String(), Limit: 1})
	if err != nil || len(items) == 0 || !q.who.Decides(items[0].Server) {
		return "", err
	}
	return pathTo("review/" + segment(items[0].ID)), nil
}

// explainDecision returns the explanation for the page of a decision, where one can be made.
func (c *Console) explainDecision(q *request, id string) *explainedView {
	if c.opt.Explain == nil {
		return nil
	}
	x, err := c.opt.Explain(q.Context(), id)
	if err != nil || !q.who.Sees(x.Server) {
		return nil
	}
	out := &explainedView{Happened: sentences(x.Happened), Delivered: sentences(x.Delivered), Notes: sentences(x.Notes)}
	for _, w := range x.Why {
		out.Why = append(out.Why, marked.Of(w.Text))
	}
	for _, s := range x.Since {
		out.Since = append(out.Since, sinceView{own(s.Time), marked.Of(s.Text), marked.Identifier(s.By), s.By != ""})
	}
	for _, d := range x.Do {
		if q.who.Decides(x.Server) {
			out.Do = append(out.Do, doView{marked.Of(d.Text), marked.Spelled(d.Command)})
		}
	}
	return out
}

func sentences(list []string) (out []marked.Text) {
	for _, s := range list {
		out = append(out, marked.Of(s))
	}
	return out
}

// facts lists the members of a statement.
func (v *recordView) facts(st *ledger.Statement) {
	add := func(name Own, value string, to ...index.Filter) {
		if value == "" {
			return
		}
		f := factView{Name: name, Value: marked.Identifier(value)}
		if len(to) > 0 {
			f.To = recordsPath(to[0])
		}
		v.Facts = append(v.Facts, f)
	}
	add("kind", string(st.Kind), index.Filter{Kinds: []ledger.Kind{st.Kind}})
	if st.Verdict != "" {
		add("verdict", st.Verdict, index.Filter{Verdicts: []string{st.Verdict}})
	}
	add("reason", st.Reason)
	if st.Server != "" {
		add("server", st.Server, index.Filter{Servers: []string{st.Server}})
	}
	if st.Tool != "" {
		add("tool", st.Tool, index.Filter{Servers: []string{st.Server}, Tools: []string{st.Tool}})
	}
	add("method", st.Method)
	add("shape", st.Shape)
	add("rule", st.Rule)
	add("actor", st.Actor)
	add("profile", st.Profile)
	if st.Of != (ledger.ID{}) {
		v.Facts = append(v.Facts, factView{"about", marked.Identifier(st.Of.String()), recordsPath(index.Filter{Of: st.Of})})
	}
	if st.Inspected > 0 {
		add("strings inspected", strconv.FormatInt(st.Inspected, 10))
	}
	for _, n := range st.Numbers {
		add("number "+labelWord(n.Name), strconv.FormatInt(n.N, 10))
	}
	for _, x := range st.Versions {
		add("version of "+labelWord(x.Of), x.Version)
	}
	for _, l := range []struct {
		name Own
		list []ledger.Count
	}{{"found", st.Findings}, {"withheld for", st.Withheld}, {"not inspected", st.NotInspected}} {
		out := codesView{Name: l.name}
		for _, n := range l.list {
			out.List = append(out.List, codeView{recordsPath(index.Filter{Code: n.Code}), codeName(n.Code), count(n.N)})
		}
		if out.List != nil {
			v.Codes = append(v.Codes, out)
		}
	}
}

// subjects lists what the record is about. The plain digests come from the opening.
func (v *recordView) subjects(st *ledger.Statement, opening []byte, open bool) {
	o, err := ledger.ParseOpening(opening)
	known := err == nil && o.Check(st) == nil
	v.Erased = !known
	for i, s := range st.Subjects {
		out := subjectView{Role: roleName(s.Role), Salted: marked.Spelled(hex.EncodeToString(s.Digest[:]))}
		if known && open && s.Role != ledger.NoContent {
			d := o.Subjects[i].Digest
			out.Plain = marked.Spelled(hex.EncodeToString(d[:]))
			switch s.Role {
			case ledger.Principal:
				out.To = recordsPath(index.Filter{Principal: d})
			case ledger.By:
				out.To = recordsPath(index.Filter{By: d})
			case ledger.KeyRole:
			default:
				out.To = recordsPath(index.Filter{Digest: d})
			}
		}
		v.Subjects = append(v.Subjects, out)
	}
}

// mostMatter bounds the records of the same matter that are shown.
const mostMatter = 20

// matter lists the records about the same thing: the one that this one is about, and those about either.
func (v *recordView) matter(q *request, l *storage.Ledger, st *ledger.Statement) error {
	ids := []ledger.ID{st.ID}
	if st.Of != (ledger.ID{}) {
		ids = append(ids, st.Of)
	}
	seen := map[int64]bool{}
	return l.View(q.Context(), func(x *storage.View) error {
		for _, id := range ids {
			for _, f := range []index.Filter{{ID: id}, {Of: id}} {
				if none, err := q.who.within(&f); err != nil || none {
					continue
				}
				list, err := x.List(&f, storage.Page{Limit: mostMatter})
				if err != nil {
					return err
				}
				for i := range list.Rows {
					if r := &list.Rows[i]; !seen[r.Index] && len(v.Matter) < mostMatter {
						seen[r.Index] = true
						v.Matter = append(v.Matter, newRecordRow(r))
					}
				}
			}
		}
		return nil
	})
}

// A proofFile is what a browser needs to check a record by itself.
type proofFile struct {
	Proof       string   `json:"proof"`       // C2SP tlog-proof, with the envelope as its extra data
	Keys        []string `json:"keys"`        // verifier keys that the log names, the oldest first
	Consistency []string `json:"consistency"` // from the size that was asked for to that of the proof, in base64
}

// proof answers with the proof of a record. from is the size of a checkpoint that the browser has pinned.
func (c *Console) proof(q *request) answer {
	e, _, not := c.entry(q)
	if not != nil {
		return not
	}
	l := c.opt.Ledger
	p, err := ledger.Prove(q.Context(), l, e.Index)
	if err != nil {
		return failed(err)
	}
	keys, err := l.Keys(q.Context())
	if err != nil {
		return failed(err)
	}
	out := proofFile{Proof: string(p.Bytes()), Keys: []string{}, Consistency: []string{}}
	for _, k := range keys {
		out.Keys = append(out.Keys, k.String())
	}
	size := ledger.CheckpointSize(p.Checkpoint)
	if from, err := strconv.ParseInt(q.URL.Query().Get("from"), 10, 64); err == nil && from > 0 && from <= size {
		newer, err := ledger.UnverifiedCheckpoint(p.Checkpoint)
		if err != nil {
			return failed(err)
		}
		path, err := ledger.ProveConsistency(q.Context(), l, from, newer)
		if err != nil {
			return failed(err)
		}
		for _, h := range path {
			out.Consistency = append(out.Consistency, h.String())
		}
	}
	return data{out}
}

// data is an answer for a script of ours, as JSON.
type data struct{ value any }

func (d data) write(c *Console, w http.ResponseWriter, q *request) {
	b, err := json.Marshal(d.value)
	if err != nil { // a mistake of ours
		failed(err).write(c, w, q)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(b)
}
