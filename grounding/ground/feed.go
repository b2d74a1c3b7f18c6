// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"bufio"
	"context"
	"iter"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/backoff"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// The bounds of the feed (docs/spec/cascade.md).
const (
	feedType    = "application/jsonl"
	feedDefault = 1000                   // entries of an answer
	feedMost    = 10_000                 // that may be asked for
	feedPage    = 256                    // entries that are held at once
	feedWait    = 60 * time.Second       // that may be asked for
	feedPoll    = 500 * time.Millisecond // between two looks into the store
	feedStall   = 30 * time.Second       // for one line to be taken by the client
)

// The kinds of the lines of a feed.
const (
	lineAttestation = "attestation"
	lineRetract     = "retract"
	lineReverse     = "reverse"
	lineEnd         = "end"  // the last one: there was no more
	lineMore        = "more" // the last one: there may be more
)

// A feedQuery is what is asked of the feed.
type feedQuery struct {
	after Cursor
	limit int
	wait  time.Duration
}

// parseFeedQuery reads after, limit and wait, and refuses everything else.
func parseFeedQuery(raw string) (feedQuery, bool) {
	q := feedQuery{limit: feedDefault}
	values, err := url.ParseQuery(raw)
	if err != nil {
		return q, false
	}
	for name, vs := range values {
		n, ok := parseCursor(vs[0])
		switch {
		case !ok || len(vs) > 1:
			return q, false
		case name == "after":
			q.after = n
		case name == "limit" && n >= 1 && n <= feedMost:
			q.limit = int(n)
		case name == "wait" && n <= Cursor(feedWait/time.Second):
			q.wait = time.Duration(n) * time.Second
		default:
			return q, false
		}
	}
	return q, true
}

// parseCursor reads decimal digits, in the one spelling that a number has.
func parseCursor(s string) (Cursor, bool) {
	n, err := strconv.ParseUint(s, 10, 63)
	return Cursor(n), err == nil && strconv.FormatUint(n, 10) == s
}

// feedHandler serves GET /ground/feed. Who may ask is for others to see to.
//
// spec: cascade/6
func (a *Adapter) feedHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			w.Header().Set("Allow", http.MethodGet)
			http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
			return
		}
		q, ok := parseFeedQuery(r.URL.RawQuery)
		if !ok {
			http.Error(w, "bad parameters: after, limit and wait are numbers", http.StatusBadRequest)
			return
		}
		page, err := a.awaitFeed(r.Context(), q)
		if err != nil {
			w.Header().Set("Retry-After", "5")
			http.Error(w, "the feed cannot be read now: try again later", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", feedType)
		w.Header().Set("Cache-Control", "private, no-cache")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		a.writeFeed(r.Context(), w, q, page)
	})
}

// awaitFeed returns the first page, an empty one if no entry comes within q.wait.
func (a *Adapter) awaitFeed(ctx context.Context, q feedQuery) ([]Entry, error) {
	deadline := time.Now().Add(q.wait)
	for {
		page, err := a.o.Store.Feed(ctx, q.after, min(q.limit, feedPage))
		left := time.Until(deadline)
		if err != nil || len(page) > 0 || left <= 0 {
			return page, err
		}
		if err := backoff.Sleep(ctx, min(left, feedPoll)); err != nil {
			return nil, err
		}
	}
}

// writeFeed writes page and what follows, and last a line that says whether that
// is all. Without that line the answer is known to be torn.
func (a *Adapter) writeFeed(ctx context.Context, w http.ResponseWriter, q feedQuery, page []Entry) {
	f := feedWriter{w: bufio.NewWriterSize(w, 64<<10), rc: http.NewResponseController(w)}
	last := lineEnd
	for len(page) > 0 {
		for i := range page {
			f.entry(&page[i])
		}
		q.after = page[len(page)-1].Cursor
		if q.limit -= len(page); q.limit <= 0 {
			last = lineMore
			break
		}
		if f.flush() != nil {
			return // the client is gone, or too slow
		}
		var err error
		if page, err = a.o.Store.Feed(ctx, q.after, min(q.limit, feedPage)); err != nil {
			return
		}
	}
	f.last(q.after, last)
	if f.flush() == nil {
		f.rc.SetWriteDeadline(time.Time{}) // the connection may serve others
	}
}

// Entries yields what a store has behind the cursor, in the order in which it was stored:
// limit entries at most, all where limit is 0. The first error ends it. An entry is valid
// until the next one.
func Entries(ctx context.Context, s Store, after Cursor, limit int) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		for left := limit; limit == 0 || left > 0; {
			n := feedPage
			if limit > 0 {
				n = min(n, left)
			}
			page, err := s.Feed(ctx, after, n)
			if err != nil {
				yield(nil, err)
				return
			}
			if len(page) == 0 {
				return
			}
			for i := range page {
				if !yield(&page[i], nil) {
					return
				}
			}
			after, left = page[len(page)-1].Cursor, left-len(page)
		}
	}
}

// A feedWriter writes lines. An error stays with its bufio.Writer.
type feedWriter struct {
	w    *bufio.Writer
	rc   *http.ResponseController
	line []byte
}

func (f *feedWriter) entry(e *Entry) {
	f.line = e.AppendJSON(f.line[:0])
	f.write("\n")
}

func (f *feedWriter) last(c Cursor, kind string) {
	f.line = beginLine(f.line[:0], c, kind)
	f.write("\"}\n")
}

// AppendJSON appends e as a line of the feed, without the line feed behind it.
//
// spec: cascade/6
func (e *Entry) AppendJSON(dst []byte) []byte {
	kind := lineAttestation
	switch e.Event {
	case Retract:
		kind = lineRetract
	case Reverse:
		kind = lineReverse
	}
	dst = beginLine(dst, e.Cursor, kind)
	dst = append(append(append(dst, `","hash":"`...), e.Hash.String()...), `","original":`...)
	return append(strictjson.AppendQuote(dst, string(e.Original)), '}')
}

// beginLine appends what every line begins with, up to the end of kind.
func beginLine(dst []byte, c Cursor, kind string) []byte {
	dst = strconv.AppendUint(append(dst, `{"cursor":"`...), uint64(min(c, math.MaxInt64)), 10)
	return append(append(dst, `","kind":"`...), kind...)
}

func (f *feedWriter) write(end string) {
	f.rc.SetWriteDeadline(time.Now().Add(feedStall)) // not every writer has one
	f.w.Write(append(f.line, end...))
}

func (f *feedWriter) flush() error {
	if err := f.w.Flush(); err != nil {
		return err
	}
	f.rc.Flush()
	return nil
}
