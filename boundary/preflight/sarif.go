// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/pellucid-mcp/pellucid/boundary/pinview"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/platform/build"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// SARIF 2.1.0 (OASIS standard, 27 March 2020), as much of it as a report
// needs. A place is a logical one, server, item and field, since a server's words
// stand in no file; where a configuration names the server, the file is told too.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool             sarifTool         `json:"tool"`
		Invocations      []sarifInvocation `json:"invocations"`
		LogicalLocations []sarifLogical    `json:"logicalLocations,omitzero"`
		Results          []sarifResult     `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		Version        string      `json:"version"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string       `json:"id"`
		ShortDescription sarifText    `json:"shortDescription"`
		FullDescription  sarifText    `json:"fullDescription"`
		Default          sarifDefault `json:"defaultConfiguration"`
	}
	sarifDefault struct {
		Level string `json:"level"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifInvocation struct {
		ExecutionSuccessful bool `json:"executionSuccessful"`
	}
	sarifLogical struct {
		Name               string `json:"name"`
		FullyQualifiedName string `json:"fullyQualifiedName"`
		Kind               string `json:"kind"`
		ParentIndex        *int   `json:"parentIndex,omitzero"`
	}
	sarifResult struct {
		RuleID       string            `json:"ruleId"`
		RuleIndex    int               `json:"ruleIndex"`
		Level        string            `json:"level"`
		Message      sarifText         `json:"message"`
		Locations    []sarifLocation   `json:"locations"`
		Fingerprints map[string]string `json:"partialFingerprints"`
	}
	sarifLocation struct {
		Physical *sarifPhysical   `json:"physicalLocation,omitzero"`
		Logical  []sarifReference `json:"logicalLocations"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifReference struct {
		Index              int    `json:"index"`
		FullyQualifiedName string `json:"fullyQualifiedName"`
	}
)

// The rules. Their levels are what the exit code makes of them: an error rejects or
// holds, a warning and a note decide nothing.
var sarifRules = []sarifRule{
	rule("hidden-text", "error", "Text that a person does not see.",
		"A string of the surface holds characters that no reader sees: zero-width, bidirectional, tag or annotation characters. They hide instructions from the person who looks at a server, and not from a model."),
	rule("review-rejected", "error", "A model did not pass the words.",
		"The review by a language model ended without its bare OK: it flagged the words, was cut off, refused, failed, or the surface is larger than the budget."),
	rule("surface-refused", "error", "The server cannot be listed as the protocol wants it.",
		"The surface is too large, does not end, is no strict JSON, differs at every listing, or has two entries of one name."),
	rule("surface-changed", "error", "The server says something else than what was approved.",
		"An item is new, changed, gone or blocked, compared with the pin. It is held until a person decides: pellucid pins."),
	rule("server-unreachable", "error", "The server could not be started or reached.",
		"Nothing was inspected."),
	rule("wording", "warning", "Words that manipulation often uses.",
		"A deterministic look at the wording. It is advice: honest text can be worded so, and an attack need not."),
	rule("told", "note", "A description that reads like an order to a model.",
		"The score of the linear model that comes with the program is above its limit. It is advice: a few honest descriptions in a thousand are, and most poisoned ones are not."),
	rule("shadowing", "warning", "A name or a text that reaches into another server.",
		"A tool has the name of another server's tool, or looks like it, or its text talks about it."),
	rule("not-inspected", "note", "What was not looked at.",
		"A clean verdict does not cover this."),
}

func rule(id, level, short, full string) sarifRule {
	return sarifRule{id, sarifText{short}, sarifText{full}, sarifDefault{level}}
}

// A sarifWriter puts one run together.
type sarifWriter struct {
	run   sarifRun
	index map[string]int // of logical locations, by name
}

// WriteSARIF writes the report as SARIF. Third-party text stands in it quoted, or in ASCII.
func (r *Report) WriteSARIF(w io.Writer) error { return terminal.WriteJSON(w, newSARIF(r)) }

func newSARIF(r *Report) sarifLog {
	w := &sarifWriter{index: map[string]int{}, run: sarifRun{
		Tool: sarifTool{sarifDriver{
			Name: "pellucid", Version: build.Read().Version,
			InformationURI: "https://github.com/pellucid-mcp/pellucid", Rules: sarifRules,
		}},
		Invocations: []sarifInvocation{{true}}, Results: []sarifResult{},
	}}
	files := map[string]string{}
	for _, s := range r.Servers {
		w.server(s)
		files[s.Name] = s.File
	}
	for _, x := range r.Shadows {
		what := map[string]string{string(surface.SameName): "has the same name as", string(surface.LookAlike): "looks like",
			string(surface.Mentions): "talks about"}[x.How]
		w.add("shadowing", files[x.Server], x.Server, x.key, x.path,
			fmt.Sprintf("%s of %s %s tool %s of %s", x.key, finding.Quote(x.Server), what, finding.Quote(x.Tool), finding.Quote(x.Other)))
	}
	return sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{w.run}}
}

func (w *sarifWriter) server(s *Server) {
	none := surface.Key{}
	add := func(rule string, key surface.Key, path, format string, args ...any) {
		w.add(rule, s.File, s.Name, key, path, fmt.Sprintf(format, args...))
	}
	switch {
	case s.Conclusion == Unreachable:
		add("server-unreachable", none, "", "%s", s.Why)
	case s.Conclusion == notChecked || s.Conclusion == skipped:
		add("not-inspected", none, "", "the server was not started: %s", s.Why)
		return
	case s.Conclusion == string(surface.Rejected) && s.Fingerprint == nil:
		add("surface-refused", none, "", "%s", s.Why)
	case s.Conclusion == string(surface.Rejected) && s.review:
		text := s.Why
		if s.Said != "" {
			text += "; the reviewer said: " + finding.Quote(s.Said)
		}
		add("review-rejected", none, "", "%s", text)
	}
	for _, h := range s.Hidden {
		text := fmt.Sprintf("hidden text: %s, bytes %d to %d: %s", h.Code, h.Start, h.End, h.Shown)
		for _, m := range h.Messages {
			text += "; it says: " + finding.Quote(m)
		}
		add("hidden-text", surface.Key{Kind: h.Kind, Name: h.Item}, h.path, "%s", text)
	}
	if s.MoreHidden > 0 {
		add("hidden-text", none, "", "hidden text in %d more places", s.MoreHidden)
	}
	for _, c := range s.Changes {
		w.change(s, &c)
	}
	for _, x := range s.Wording {
		add("wording", x.key, x.path, "%s (score %d): %s", x.Family, x.Score, x.Shown)
	}
	for _, x := range s.Told {
		add("told", x.key, x.path, "reads like an order to a model (%.2f): %s", x.Score, x.Shown)
	}
	for _, x := range s.NotInspected {
		add("not-inspected", none, "", "%s", x)
	}
}

// change is one result for each field that differs, or one for the item.
func (w *sarifWriter) change(s *Server, c *pinview.Change) {
	if c.State.Live() || c.State == "" && c.Verdict != surface.Removed {
		return // a person has approved it
	}
	what := string(c.Verdict)
	if c.State != "" {
		what += ", " + string(c.State)
	}
	if len(c.Fields) == 0 {
		w.add("surface-changed", s.File, s.Name, c.Key(), "", what)
	}
	for _, f := range c.Fields {
		w.add("surface-changed", s.File, s.Name, c.Key(), f.Path,
			fmt.Sprintf("%s: field %s, before %s, now %s", what, f.Verdict, finding.Quote(f.Old), finding.Quote(f.New)))
	}
}

// add adds a result. text is for people, with strangers' parts of it quoted.
func (w *sarifWriter) add(id, file, server string, key surface.Key, path, text string) {
	i := 0
	for sarifRules[i].ID != id {
		i++
	}
	at := sarifLocation{Logical: []sarifReference{w.place(server, key, path)}}
	if file != "" {
		at.Physical = &sarifPhysical{sarifArtifact{fileURI(file)}}
	}
	place := id + "\x00" + at.Logical[0].FullyQualifiedName
	if path == "" { // there may be several of a kind
		place += "\x00" + text
	}
	sum := sha256.Sum256([]byte(place))
	w.run.Results = append(w.run.Results, sarifResult{
		RuleID: id, RuleIndex: i, Level: sarifRules[i].Default.Level, Message: sarifText{sarifPlain(text)},
		Locations: []sarifLocation{at}, Fingerprints: map[string]string{"place/v1": hex.EncodeToString(sum[:16])},
	})
}

// place is the logical location of a field, an item or a server, under those that hold it.
func (w *sarifWriter) place(server string, key surface.Key, path string) sarifReference {
	if server == "" {
		server = "surface"
	}
	name := finding.Quote(server)
	at := w.intern(name, name, "module", nil)
	if key == (surface.Key{}) && path == "" {
		return at // the key is also that of the server's own words
	}
	item := terminal.Printable(key.String())
	in := w.intern(item, at.FullyQualifiedName+"/"+item, "object", &at)
	if path == "" {
		return in
	}
	path = terminal.Printable(path)
	return w.intern(path[strings.LastIndexByte(path, '/')+1:], in.FullyQualifiedName+path, "property", &in)
}

func (w *sarifWriter) intern(name, full, kind string, parent *sarifReference) sarifReference {
	i, ok := w.index[full]
	if !ok {
		i = len(w.run.LogicalLocations)
		w.index[full] = i
		l := sarifLogical{Name: name, FullyQualifiedName: full, Kind: kind}
		if parent != nil {
			l.ParentIndex = &parent.Index
		}
		w.run.LogicalLocations = append(w.run.LogicalLocations, l)
	}
	return sarifReference{i, full}
}

// sarifPlain is text for a message: brackets make links there (SARIF 3.11.6), so that
// a stranger's would lead a person astray.
func sarifPlain(text string) string {
	return strings.NewReplacer(`\`, `\\`, "[", `\[`, "]", `\]`).Replace(terminal.Printable(text))
}

// fileURI is a path as a URI reference: relative as it is, absolute with its scheme.
func fileURI(path string) string {
	u := url.URL{Path: filepath.ToSlash(path)}
	if filepath.IsAbs(path) {
		u.Scheme = "file"
		if !strings.HasPrefix(u.Path, "/") {
			u.Path = "/" + u.Path // of Windows
		}
		return u.String()
	}
	return u.String()
}
