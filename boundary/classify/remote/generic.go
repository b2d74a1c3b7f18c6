// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"strconv"

	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// HTTP is any classifier behind a small contract, so that a model of one's own can
// be used behind a few lines of server (version 1):
//
//	POST {url}            {"version":1,"texts":["one","two"]}
//	200 application/json  {"scores":[{"score":0.02},{"score":0.97,"flagged":true,"label":"INJECTION"}]}
//
// score is between 0 and 1. flagged may be left out: then 0.5 and above is. label may
// be left out; it is 1 to 64 of A-Z a-z 0-9 . _ -. There is one score for each text, in
// their order; other members are not looked at.
type HTTP struct {
	*caller
	limits classify.Limits
	name   string
}

// NewHTTP returns a classifier at s.URL. name is its version: change it with the model.
// The zero Limits stand for 16 texts of 8,000 characters.
func NewHTTP(s Service, name string, limits classify.Limits) (*HTTP, error) {
	if limits == (classify.Limits{}) {
		limits = classify.Limits{Texts: 16, Chars: 8_000}
	}
	c, err := newCaller(s, bearer)
	return &HTTP{c, limits, version("http", name)}, err
}

// Limits implements classify.Classifier.
func (h *HTTP) Limits() classify.Limits { return h.limits }

// Version implements classify.Classifier.
func (h *HTTP) Version() string { return h.name }

// Classify implements classify.Classifier.
func (h *HTTP) Classify(ctx context.Context, texts []string) ([]classify.Score, error) {
	var doc strictjson.Doc
	root, err := h.post(ctx, "", append(strictjson.AppendStrings([]byte(`{"version":1,"texts":`), texts), '}'), &doc)
	if err != nil {
		return nil, err
	}
	list := root.Get("scores")
	if list.Kind() != '[' || list.Len() != len(texts) {
		return nil, malformed("scores")
	}
	var out []classify.Score
	for e := range list.Elements() {
		s, err := scoreOf(e)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

func scoreOf(e strictjson.Value) (s classify.Score, err error) {
	if e.Get("score").Kind() != '0' {
		return s, malformed("score")
	}
	if s.P, err = strconv.ParseFloat(string(e.Get("score").Raw()), 64); err != nil || !(s.P >= 0 && s.P <= 1) {
		return s, malformed("score")
	}
	s.Flagged = s.P >= 0.5
	if f := e.Get("flagged"); f.Exists() {
		var ok bool
		if s.Flagged, ok = f.Bool(); !ok {
			return s, malformed("flagged")
		}
	}
	if l := e.Get("label"); l.Exists() {
		if l.Kind() != '"' {
			return s, malformed("label")
		}
		s.Code = classify.CodeOf(l.Text())
	}
	return s, nil
}
