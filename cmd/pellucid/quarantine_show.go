// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/platform/capture"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/scrub"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

type quarantineShowCmd struct {
	stateDB
	JSON bool `name:"json" help:"Print the item as JSON, with its body and what hides in it."`
	reviewerKey
	itemID
}

// reviewerKey is the key of a reviewer.
type reviewerKey struct {
	Identity string `placeholder:"env:NAME|file:PATH" help:"Your identity of age, as age-keygen writes it, where the item is encrypted to its reviewers."`
}

// unseal decrypts the body of an item; nil where there is nothing to open.
func (k *reviewerKey) unseal(e *env, it *hold.Item) ([]byte, error) {
	if !it.Sealed() || k.Identity == "" {
		return nil, nil
	}
	text, err := k.text(e)
	if err != nil {
		return nil, err
	}
	body, err := capture.Open(it.Body, text)
	switch {
	case errors.Is(err, capture.ErrIdentity):
		return nil, exit.With(exit.Config, fmt.Errorf("quarantine: --identity: %w", err))
	case err != nil:
		return nil, err
	case !it.Opened(body):
		return nil, hold.ErrOpened // whoever writes to the store can encrypt to a public key, too
	}
	return body, nil
}

// maxIdentity is what is read of a file of identities.
const maxIdentity = 64 << 10

// text is what the reference stands for. A file may have comments, unlike other secrets.
func (k *reviewerKey) text(e *env) (string, error) {
	path, ok := strings.CutPrefix(k.Identity, "file:")
	if !ok {
		return e.secrets().optional("quarantine: --identity", k.Identity)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", exit.With(exit.Config, errors.New("quarantine: --identity: the file cannot be read"))
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxIdentity))
	if err != nil {
		return "", exit.With(exit.Config, errors.New("quarantine: --identity: the file cannot be read"))
	}
	return string(b), nil
}

func (quarantineShowCmd) Help() string {
	return `Prints every text of the result as it was received. What a terminal would not show, or
would obey, is spelled out; messages in hidden characters are decoded. It is all a
stranger's text: read it, and do not paste it into a model. Once an item was taken or
denied, or has expired, its body is gone.`
}

func (c *quarantineShowCmd) Run(e *env) error {
	return withQueue(c.DB, func(ctx context.Context, q *hold.Queue) error {
		it, err := q.Get(ctx, c.ID)
		if err != nil {
			return err
		}
		body, err := c.unseal(e, &it)
		switch {
		case err != nil:
			return err
		case body != nil:
			it.Body = body
		}
		sealed := it.Sealed()
		if sealed {
			it.Body = nil
		}
		texts := textsOf(it.Body)
		if !c.JSON {
			return showItem(e.Stdout, terminal.PaletteFor(e.Stdout, e.Getenv), &it, texts, sealed)
		}
		out := newItemJSON(&it)
		out.Sealed = sealed
		if it.Body != nil {
			body := string(it.Body)
			out.Body = &body
		}
		for t := range texts {
			for _, h := range scrub.Reveal(t.text) {
				out.Hidden = append(out.Hidden, hiddenJSON{t.place, fmt.Sprint(h.Kind), h.Start, h.End, h.Message})
			}
		}
		return terminal.WriteJSON(e.Stdout, out)
	})
}

// itemJSON is an item for programs. Body and the messages in Hidden are a
// stranger's text.
type itemJSON struct {
	ID        string       `json:"id"`
	State     string       `json:"state"`
	Server    string       `json:"server"`
	Tool      string       `json:"tool,omitzero"`
	Principal string       `json:"principal,omitzero"`
	Rule      string       `json:"rule"`
	Code      string       `json:"code"`
	Call      string       `json:"call"`
	Digest    string       `json:"digest"`
	Octets    int          `json:"octets"`
	Held      time.Time    `json:"held"`
	Until     time.Time    `json:"until"`
	Decided   time.Time    `json:"decided,omitzero"`
	By        string       `json:"by,omitzero"`
	Sealed    bool         `json:"sealed,omitzero"` // show alone says so: and was not opened
	Body      *string      `json:"body,omitzero"`
	Hidden    []hiddenJSON `json:"hidden,omitzero"`
}

type hiddenJSON struct {
	Place   string `json:"place"`
	Kind    string `json:"kind"`
	Start   int    `json:"start"`
	End     int    `json:"end"`
	Message string `json:"message"`
}

func newItemJSON(it *hold.Item) *itemJSON {
	it = believed(it)
	return &itemJSON{
		ID: it.ID, State: string(it.State), Server: it.Server, Tool: it.Tool, Principal: it.Principal, Rule: it.Rule,
		Code: codeOf(it), Call: it.Call.String(), Digest: it.Digest.String(), Octets: it.Octets,
		Held: it.Held, Until: it.Until, Decided: it.Decided, By: it.By,
	}
}

// showItem prints an item for a person.
func showItem(dst io.Writer, p terminal.Palette, it *hold.Item, texts iter.Seq[placed], sealed bool) error {
	it = believed(it)
	w := bufio.NewWriter(dst)
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%s %s\n", p.Dim(fmt.Sprintf("%-10s", name)), terminal.Inline(value))
		}
	}
	row("item", it.ID)
	row("state", string(it.State))
	row("tool", toolOf(it))
	row("principal", it.Principal)
	row("held for", codeOf(it)+" ("+it.Rule+")")
	row("held", terminal.Minute(it.Held)+", until "+terminal.Minute(it.Until))
	if it.By != "" {
		row("decided", terminal.Minute(it.Decided)+" by "+it.By)
	}
	row("digest", it.Digest.String())
	row("size", terminal.Plural(it.Octets, "octet"))
	if sealed {
		terminal.Section(w, p, "its content is encrypted to its reviewers: --identity opens it")
		return w.Flush()
	}
	if it.Body == nil {
		terminal.Section(w, p, "its content is gone: it was delivered or denied, or has expired")
		return w.Flush()
	}
	for t := range texts {
		terminal.Section(w, p, t.place)
		terminal.Indent(w, terminal.Printable(t.text))
		terminal.ExplainHidden(w, p, t.text)
	}
	return w.Flush()
}

// A placed text is a string of a body with the place where it stands. Names that a
// stranger chose are quoted in it.
type placed struct{ place, text string }

// textsOf are the strings of a body, the names of members too where they hide something.
// What is no JSON is one text.
func textsOf(body []byte) iter.Seq[placed] {
	return func(yield func(placed) bool) {
		var doc strictjson.Doc
		switch {
		case body == nil:
		case doc.Reset(body, strictjson.Limits{MendSurrogates: true}) != nil:
			yield(placed{"the whole", string(body)})
		default:
			eachText("", doc.Root(), yield)
		}
	}
}

// maxPlace bounds what is shown of a path, in octets: the end of it.
const maxPlace = 512

func eachText(place string, v strictjson.Value, yield func(placed) bool) bool {
	if len(place) > maxPlace {
		place = "\u2026" + place[len(place)-maxPlace/2:]
	}
	switch v.Kind() {
	case '{':
		for name, m := range v.Members() {
			text := name.Text()
			at := strings.TrimPrefix(place+"/"+shownName(text), "/")
			if terminal.Printable(text) != text && !yield(placed{"name at " + at, text}) || !eachText(at, m, yield) {
				return false
			}
		}
	case '[':
		n := 0
		for e := range v.Elements() {
			if !eachText(place+"/"+strconv.Itoa(n), e, yield) {
				return false
			}
			n++
		}
	case '"':
		return yield(placed{place, v.Text()})
	}
	return true
}

// shownName is a member's name on a path: as it is where it is a plain word.
func shownName(s string) string {
	plain := s != "" && len(s) <= 64 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.$") == ""
	if plain {
		return s
	}
	return finding.Quote(s)
}
