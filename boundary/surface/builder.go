// SPDX-License-Identifier: Apache-2.0

package surface

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A Reason says why no surface could be made of a server's answers. It is a
// constant of this package, never text that a third party chose.
type Reason string

// The reasons.
const (
	NotJSON      Reason = "surface-not-json"       // no strict JSON
	TooLarge     Reason = "surface-too-large"      // more bytes than Limits.size
	TooManyItems Reason = "surface-too-many-items" // more entries than Limits.items
	EndlessList  Reason = "surface-endless-list"   // more pages than Limits.pages
	OutOfOrder   Reason = "surface-out-of-order"   // a page that nobody asked for
	Misshapen    Reason = "surface-misshapen"      // not what the protocol calls an answer
	TwiceNamed   Reason = "surface-name-twice"     // two entries of one name
	Unsettled    Reason = "surface-unsettled"      // another answer each time it is asked
	NoAnswer     Reason = "surface-no-answer"      // none in time, or no connection
	NoServer     Reason = "surface-no-server"      // neither initialize nor server/discover was answered
	Chatter      Reason = "surface-chatter"        // too many messages that answer nothing
	NotADump     Reason = "surface-not-a-dump"     // not the format of docs/spec/surface.md
	Unfinished   Reason = "surface-unfinished"     // a list whose last page is missing
)

// A RefusedError says that there is no surface to judge.
type RefusedError struct {
	Reason Reason
	Method string // of the answer that is wrong; "" if no answer is
	Err    error  // more for the operator, or nil
}

func (e *RefusedError) Error() string {
	s := "surface: refused: " + string(e.Reason)
	if e.Method != "" {
		s += ": " + e.Method
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns Err.
func (e *RefusedError) Unwrap() error { return e.Err }

// Limits bound one surface. The zero value is the strict default.
type Limits struct {
	size  int // of all answers; 0 = 16 MiB
	pages int // of one list; 0 = 2,000
	items int // entries of all lists; 0 = 10,000
}

func (l Limits) withDefaults() Limits {
	return Limits{orDefault(l.size, 16<<20), orDefault(l.pages, 2000), orDefault(l.items, 10_000)}
}

func orDefault(n, def int) int {
	if n <= 0 {
		return def
	}
	return n
}

// maxCursor bounds a cursor, in bytes.
const maxCursor = 16 << 10

// A builder makes a Surface of a server's answers, for whoever has them already.
// Collect asks for them.
type builder struct {
	lim      Limits
	size     int
	items    []Item
	extras   map[string][]string // by method: what pages say beside their entries
	progress map[string]*progress
	answers  []answer
	unlisted []Unlisted
	said     strictjson.Value // how the server introduced itself
	hello    bool
	revision string // of the protocol, that the server speaks
	leftOut  []LeftOut
	looped   []string
	without  int // entries that cannot be items
}

// progress is how far a list has come.
type progress struct {
	pages   int
	entries int
	next    string
	seen    map[string]bool // cursors
	done    bool
}

// newBuilder returns an empty Builder.
func newBuilder(lim Limits) *builder {
	return &builder{lim: lim.withDefaults(), extras: map[string][]string{}, progress: map[string]*progress{}}
}

// add takes the result of initialize, server/discover, or of one page of a list:
// the one that cursor asked for, which is "" for the first. It copies result and
// returns the cursor of the next page, "" if not found. The error is a
// *RefusedError; nothing more can be added after it.
func (b *builder) add(method, cursor string, result []byte) (next string, err error) {
	fail := func(r Reason, err error) (string, error) { return "", &RefusedError{r, method, err} }
	if b.size += len(result); b.size > b.lim.size {
		return fail(TooLarge, nil)
	}
	doc := new(strictjson.Doc)
	if err := doc.Reset(bytes.Clone(result), strictjson.Limits{Bytes: b.lim.size, MendSurrogates: true}); err != nil {
		return fail(NotJSON, err)
	}
	root := doc.Root()
	if kind := root.Get("resultType"); root.Kind() != '{' || kind.Exists() && kind.Text() != "complete" {
		return fail(Misshapen, nil)
	}
	if method == mcpmsg.Initialize || method == mcpmsg.Discover {
		if b.hello {
			return fail(OutOfOrder, nil)
		}
		b.hello, b.said, b.revision = true, root, mcpmsg.Modern
		if method == mcpmsg.Initialize {
			b.revision = strings.Clone(root.Get("protocolVersion").Text())
		}
		b.items = append(b.items, HelloItem(root))
		b.answers = append(b.answers, answer{method, doc})
		return "", nil
	}
	l := listOf(method)
	if l == nil {
		return fail(OutOfOrder, nil)
	}
	next, reason := b.page(l, cursor, root)
	if reason != "" {
		return fail(reason, nil)
	}
	b.answers = append(b.answers, answer{method, doc})
	return next, nil
}

func (b *builder) page(l *list, cursor string, root strictjson.Value) (next string, _ Reason) {
	p := b.progress[l.method]
	if p == nil {
		p = &progress{seen: map[string]bool{}}
		b.progress[l.method] = p
	}
	cur := root.Get("nextCursor")
	next = strings.Clone(cur.Text())
	switch {
	case p.done || cursor != p.next:
		return "", OutOfOrder
	case len(next) > maxCursor:
		return "", Misshapen
	case p.seen[next] && next != "", cur.Exists() && cur.Kind() != '"' && cur.Kind() != 'n': // the list goes in a circle, or nowhere
		b.looped = append(b.looped, l.method)
		next = ""
	}
	if p.pages++; p.pages == b.lim.pages && next != "" {
		return "", EndlessList
	}
	p.next, p.done, p.seen[next] = next, next == "", true
	entries := root.Get(l.member)
	if k := entries.Kind(); entries.Exists() && k != '[' && k != 'n' {
		return "", Misshapen
	}
	b.judge(l, p, root)
	for e := range entries.Elements() {
		it, ok := EntryItem(l.method, e)
		if len(b.items)+b.without > b.lim.items { // the server's own is not counted
			return "", TooManyItems
		}
		if !ok {
			b.without++
			continue
		}
		b.items = append(b.items, it)
	}
	b.extra(l, root)
	return next, ""
}

// extra keeps what a page says beside its entries: usually nothing.
func (b *builder) extra(l *list, root strictjson.Value) {
	if rest := beside(l, root, b.said); rest != "" && !slices.Contains(b.extras[l.method], rest) {
		b.extras[l.method] = append(b.extras[l.method], rest)
	}
}

// refuse notes that the server answered the first page of a list with an error.
func (b *builder) refuse(method string, code int64) error {
	l := listOf(method)
	if l == nil || b.progress[method] != nil {
		return &RefusedError{OutOfOrder, method, nil}
	}
	b.progress[method] = &progress{done: true}
	b.unlisted = append(b.unlisted, Unlisted{Method: l.method, Code: code})
	return nil
}

// surface returns what has been added, as a whole. The Builder is of no use
// after. The error is a *RefusedError.
func (b *builder) surface() (*Surface, error) {
	if !b.hello {
		return nil, &RefusedError{NoServer, "", nil}
	}
	for _, l := range lists {
		if p := b.progress[l.method]; p != nil && !p.done {
			return nil, &RefusedError{Unfinished, l.method, nil}
		}
		if rest := b.extras[l.method]; len(rest) > 0 {
			slices.Sort(rest)
			b.items = append(b.items, newItem(Key{List, l.method}, []byte("["+strings.Join(rest, ",")+"]")))
		}
	}
	slices.SortStableFunc(b.items, func(x, y Item) int {
		if c := x.Key.compare(y.Key); c != 0 {
			return c
		}
		return bytes.Compare(x.Digest[:], y.Digest[:])
	})
	// Pages that overlap are honest; two things of one name are not.
	b.items = slices.CompactFunc(b.items, func(x, y Item) bool { return x.Key == y.Key && x.Digest == y.Digest })
	for i := 1; i < len(b.items); i++ {
		if b.items[i].Key == b.items[i-1].Key {
			return nil, &RefusedError{TwiceNamed, "", fmt.Errorf("%s %s", b.items[i].Kind, finding.Quote(b.items[i].Name))}
		}
	}
	for i := range b.unlisted {
		b.unlisted[i].Declared = b.said.Get("capabilities").Get(listOf(b.unlisted[i].Method).capability).Kind() == '{'
	}
	return &Surface{
		items: b.items, print: fingerprintOf(b.items), answers: b.answers, unlisted: b.unlisted, size: b.size,
		leftOut: b.leftOut, looped: b.looped,
	}, nil
}
