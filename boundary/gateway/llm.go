// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/boundary/validate"
	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/href"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// An LLM says how results are delivered that an external language model generated.
type LLM struct {
	Envelope *frame.LLM
	Source   string // label of the provider's service
	// Model is the label of the model. Without it, or with [frame.Other], it is the one that the
	// server's answer names, if that is a label, and else left out.
	Model string
	// Search: the answers are what a search found, which no model has written.
	Search bool
}

// llmKey names the _meta member that holds what structuredContent could not: the
// server has a member of that name itself, or its schema leaves no room.
const llmKey = frame.MetaPrefix + "llm"

// Bounds of what is taken from a language model's answer.
const (
	maxModel   = 64  // bytes of the name of a model
	maxSources = 256 // citations, or results of a search
)

func (l *LLM) valid() bool { return l != nil && l.Envelope != nil }

// model is the label of the model that has written a result: the operator's, else
// what the result says of itself.
func (l *LLM) model(result strictjson.Value) string {
	switch {
	case l.Search:
		return ""
	case l.Model != "" && l.Model != frame.Other:
		return l.Model
	}
	for _, v := range [...]strictjson.Value{result.Get("structuredContent"), result.Get("_meta")} {
		if s := v.Get("model").Text(); len(s) <= maxModel && frame.IsLabel(s) {
			return strings.Clone(s)
		}
	}
	return ""
}

func (l *LLM) origin(o frame.Origin) frame.LLMOrigin {
	return frame.LLMOrigin{Source: l.Source, Model: o.Model, Tool: o.Tool}
}

// announce says in a list which tools return the text of a language model, and lets
// their schemas allow what their results gain.
func (in *inspection) announce(root strictjson.Value) {
	if in.p.method != mcpmsg.ListTools || in.p.msg.Kind != wire.Response || in.cfg.Tools == nil && in.cfg.Frame != frame.KindLLM {
		return
	}
	for t := range root.Get("tools").Elements() {
		rule := in.cfg.rule(t.Get("name").Text())
		if rule.Frame != frame.KindLLM || t.Kind() != '{' {
			continue
		}
		in.amend(t, "description", rule.LLM.Envelope.Description())
		extendSchema(&in.w.edits, t.Get("outputSchema"), rule.LLM.Search)
	}
}

// isAnswer reports whether a result is one: no question, and no task under way.
func isAnswer(result strictjson.Value) bool {
	kind := result.Get("resultType")
	return (!kind.Exists() || kind.Text() == "complete") && !result.Get("task").Exists()
}

// promised is the schema that the client was shown: the one that the server has
// declared or, of a language model's tool, what announce made of it.
func (in *inspection) promised() *validate.Schema {
	if in.rule.StructuredText || in.w.llm != nil && (!isToolResult(in.row) || resultAtOnce(in.p.msg.Value()).Exists()) {
		return nil
	}
	if in.p.schema == nil || in.w.llm == nil || in.again.Reset(in.p.output, strictjson.Limits{}) != nil {
		return in.p.schema
	}
	var e strictjson.Edits
	if !extendSchema(&e, in.again.Root(), in.w.llm.Search) {
		return in.p.schema
	}
	return in.cfg.Schemas.Compile(e.Apply(nil, in.again.Root()))
}

// describe adds to structuredContent whose answer it is. What it cannot say there, because the server
// has said something itself or the schema forbids it, is returned as the member for _meta.
func (in *inspection) describe(root strictjson.Value) []byte {
	w := &in.w
	answer := strings.Join(w.answer, "\n")
	w.scrubs.again(w.text).Scrub(answer, &w.res)
	w.noteCut(len(answer))
	c := frame.LLMContent{LLMOrigin: w.llm.origin(w.origin), Body: w.res.Clean, Cut: cmp.Or(w.cut, w.answerCut), Search: w.llm.Search}
	content := root.Get("structuredContent")
	own := strictjson.Value{} // the server's, clean
	if content.Exists() && in.again.Reset(w.edits.Apply(nil, content), strictjson.Limits{}) == nil {
		own = in.again.Root()
	}
	if c.Search {
		c.Results = in.results(own, c.Body.String())
	} else {
		c.Citations = in.citations(own, root.Get("_meta"), c.Body.String())
	}
	described, stayed := []byte(nil), []string{"source", "model", "citations", "structured_results"}
	switch {
	case !content.Exists():
		if raw := c.AppendJSON(nil); in.p.fitsSchema(own, raw) {
			w.edits.Append(root, "structuredContent", raw)
			w.notFramed.Add("structuredContent")
			return nil
		}
	case own.Kind() == '{':
		var e strictjson.Edits
		kept := mergeContent(&e, own, c.Members())
		if raw := e.Apply(nil, own); in.p.fitsSchema(own, raw) {
			described, stayed = raw, kept
		}
	}
	if described != nil {
		w.edits.Replace(content, described)
	}
	return elsewhere(&c, stayed, own)
}

// fitsSchema reports whether a client that has been promised the schema may get raw in the place
// of own: our members must not break what was right before.
func (p *passage) fitsSchema(own strictjson.Value, raw []byte) bool {
	s, ctx := p.schema, p.context()
	if s == nil || own.Exists() && s.Check(ctx, own).Conformity != validate.Valid {
		return true
	}
	var doc strictjson.Doc
	return doc.Reset(raw, strictjson.Limits{}) == nil && s.Check(ctx, doc.Root()).Conformity == validate.Valid
}

// elsewhere is the object of those members of c that have one of the names and say
// something that own does not.
func elsewhere(c *frame.LLMContent, names []string, own strictjson.Value) []byte {
	var doc strictjson.Doc
	if doc.Reset(c.AppendJSON(nil), strictjson.Limits{}) != nil {
		return nil
	}
	var all []signal
	for _, name := range names {
		ours, theirs := doc.Root().Get(name), own.Get(name)
		switch {
		case !ours.Exists(), name == "response", name == "results":
		case ours.Len() == 0 && ours.Kind() == '[':
		case theirs.Kind() == '"' && theirs.Text() == ours.Text():
		case theirs.Exists() && ours.Kind() == '[': // it was taken from there
		default:
			all = append(all, signal{name, ours.Raw()})
		}
	}
	if all == nil {
		return nil
	}
	return appendSignals(nil, all)
}

// citations finds the sources of an answer: a list that the server gives or, at the
// end of the text, lines of the form "[n] URI" under "Citations:". Of these only
// allowed URIs are taken.
func (in *inspection) citations(own, meta strictjson.Value, text string) []string {
	var found []string
	for _, v := range [...]strictjson.Value{own.Get("citations"), own.Get("sources"), own.Get("search_results"), meta.Get("citations")} {
		for e := range v.Elements() {
			if e.Kind() == '{' {
				e = e.Get("url")
			}
			if e.Kind() == '"' && len(found) < maxSources {
				found = append(found, e.Text())
			}
		}
		if found != nil {
			break
		}
	}
	if found == nil {
		found = cited(text)
	}
	allowed := found[:0]
	for _, s := range found {
		if in.allowedURI(s, "citations") {
			allowed = append(allowed, strings.Clone(s))
		}
	}
	return allowed
}

// cited reads the list that @perplexity-ai/mcp-server puts behind an answer.
func cited(text string) (found []string) {
	const title = "\nCitations:\n"
	at := strings.LastIndex(text, title)
	if at < 0 {
		return nil
	}
	for line := range strings.Lines(text[at+len(title):]) {
		number, uri, is := strings.Cut(strings.TrimSpace(line), "] ")
		if !is || len(number) < 2 || number[0] != '[' || strings.Trim(number[1:], "0123456789") != "" || len(found) == maxSources {
			break
		}
		found = append(found, uri)
	}
	return found
}

// allowedURI notes of a URI that is refused that it is left out.
func (in *inspection) allowedURI(s, field string) bool {
	_, err := href.Parse(s)
	refusal, refused := err.(*href.Refusal)
	if !refused {
		return err == nil
	}
	in.w.path = append(in.w.path[:0], step{name: field})
	in.w.addFinding(refusal.Code, 1, nil)
	in.w.path = in.w.path[:0]
	return false
}

// results finds what a search has found: a list that the server gives, or the
// numbered entries of the text.
func (in *inspection) results(own strictjson.Value, text string) []byte {
	if v := own.Get("results"); v.Kind() == '[' {
		return v.Raw()
	}
	dst := []byte{'['}
	for i, e := range listed(text) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strictjson.AppendQuote(append(dst, `{"title":`...), e.title)
		if in.allowedURI(e.url, "structured_results") {
			dst = strictjson.AppendQuote(append(dst, `,"url":`...), e.url)
		}
		if e.snippet != "" {
			dst = strictjson.AppendQuote(append(dst, `,"snippet":`...), e.snippet)
		}
		if e.date != "" {
			dst = strictjson.AppendQuote(append(dst, `,"date":`...), e.date)
		}
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

// A hit is an entry of a search's results.
type hit struct{ title, url, snippet, date string }

// listed reads the entries as @perplexity-ai/mcp-server writes them:
//
//  1. **title**
//     URL: https://…
//     snippet, of one or more lines
//     Date: 2026-01-31
func listed(text string) (hits []hit) {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if title, is := titleOf(line, len(hits)+1); is && i+1 < len(lines) && len(hits) < maxSources {
			if url, is := strings.CutPrefix(lines[i+1], "   URL: "); is {
				hits = append(hits, hit{title: title, url: strings.TrimSpace(url)})
				continue
			}
		}
		if len(hits) == 0 {
			continue
		}
		last := &hits[len(hits)-1]
		line = strings.TrimSpace(line)
		date, dated := strings.CutPrefix(line, "Date: ")
		switch {
		case line == "", line == "URL: "+last.url, last.date != "":
		case dated:
			last.date = date
		case last.snippet == "":
			last.snippet = line
		default:
			last.snippet += "\n" + line
		}
	}
	return hits
}

// titleOf is the title in the first line of entry n.
func titleOf(line string, n int) (title string, is bool) {
	title, is = strings.CutPrefix(line, strconv.Itoa(n)+". **")
	if !is {
		return "", false
	}
	return strings.CutSuffix(strings.TrimSpace(title), "**")
}
