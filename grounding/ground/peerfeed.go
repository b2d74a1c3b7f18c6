// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/platform/backoff"
	"github.com/pellucid-mcp/pellucid/platform/loopback"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// The bounds of what is read of a peer at once. What is over stays for the next
// time.
const (
	peerEntries = 500
	peerBytes   = 16 << 20
	peerLine    = 6*attest.MaxBytes + 1024 // an original of which every byte is escaped
	peerStall   = 30 * time.Second         // for one line to come
	peerAnswer  = 5 * time.Minute          // for all of them
)

// A peerFeed is the feed of another aggregator.
type peerFeed struct {
	url    *url.URL
	token  string
	client *http.Client
	own    *http.Transport // nil: the caller's
}

// Check says why a peer cannot be followed, as far as its URL says it.
func (p Peer) Check() error {
	f, err := newPeerFeed(p)
	if err == nil {
		f.close()
	}
	return err
}

func newPeerFeed(p Peer) (*peerFeed, error) {
	u, err := url.Parse(p.URL)
	switch {
	case err != nil:
		return nil, errors.New("the URL is malformed")
	case u.Scheme != "https" && !(u.Scheme == "http" && loopback.Host(u.Hostname())):
		return nil, errors.New("the URL is not https, and not http on this machine")
	case u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, errors.New("the URL has no host, or a user, a query or a fragment")
	case strings.IndexFunc(p.Token, func(r rune) bool { return r <= ' ' || r > '~' }) >= 0:
		return nil, errors.New("the token is not made of visible ASCII characters")
	}
	f := &peerFeed{url: u, token: p.Token, client: new(http.Client)}
	if p.Client != nil {
		*f.client = *p.Client
	} else {
		f.own = http.DefaultTransport.(*http.Transport).Clone()
		f.own.MaxResponseHeaderBytes = 64 << 10
		f.client.Transport = f.own
	}
	// The token is for this host, and the bounds are for this answer.
	f.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	f.client.Jar = nil
	return f, nil
}

func (f *peerFeed) close() {
	if f.own != nil {
		f.own.CloseIdleConnections()
	}
}

// A feedEntry is one attestation or event of a peer's feed, not yet looked into.
type feedEntry struct {
	cursor   Cursor
	position string // cursor, as the peer wrote it
	event    bool
	hash     attest.Hash // as the peer says
	original []byte
	code     string // of the last receipt, if it is to be tried again
}

// A peerPage is what came of one answer.
type peerPage struct {
	entries []feedEntry
	end     bool // there was no more
}

// A statusError is an answer that is none.
type statusError struct {
	status int
	after  time.Duration // that the peer asks to wait
}

func (e *statusError) Error() string { return "status " + strconv.Itoa(e.status) }

// The faults of a feed.
var (
	errFeedTorn    = errors.New("the answer ends without a last line")
	errFeedLong    = errors.New("a line is too long")
	errFeedLine    = errors.New("a line is malformed")
	errFeedOrder   = errors.New("a cursor does not come after the one before")
	errFeedStands  = errors.New("the answer promises more and brings nothing")
	errFeedMany    = errors.New("the answer has more lines than were asked for")
	errFeedEncoded = errors.New("the answer is encoded, but no encoding was asked for")
	errFeedSlow    = errors.New("the answer takes too long")
)

// fetch asks for what comes after a cursor, and waits for new entries if nothing does,
// at most as long as it likes to be asked anew. Entries that came before an error
// are good.
func (f *peerFeed) fetch(ctx context.Context, after Cursor, wait time.Duration) (peerPage, error) {
	if t := f.client.Timeout; t > 0 {
		wait = min(wait, t/2)
	}
	wait = min(wait, feedWait, peerAnswer/2).Truncate(time.Second)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	whole := time.AfterFunc(peerAnswer, func() { cancel(errFeedSlow) })
	defer whole.Stop()
	stall := time.AfterFunc(wait+peerStall, func() { cancel(errFeedSlow) })
	defer stall.Stop()

	res, err := f.ask(ctx, after, wait)
	if err != nil {
		return peerPage{}, slow(ctx, err)
	}
	defer res.Body.Close()
	page, err := readFeed(res.Body, after, func() { stall.Reset(peerStall) })
	return page, slow(ctx, err)
}

// slow is errFeedSlow where that is why the answer ended.
func slow(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errFeedSlow) {
		return errFeedSlow
	}
	return err
}

func (f *peerFeed) ask(ctx context.Context, after Cursor, wait time.Duration) (*http.Response, error) {
	u := *f.url
	u.RawQuery = fmt.Sprintf("after=%d&limit=%d", after, peerEntries)
	if wait > 0 {
		u.RawQuery += fmt.Sprintf("&wait=%d", wait/time.Second)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", feedType)
	req.Header.Set("Accept-Encoding", "identity") // nothing that grows when it is decoded
	if f.token != "" {
		req.Header.Set("Authorization", "Bearer "+f.token)
	}
	res, err := f.client.Do(req)
	if err != nil {
		return nil, err
	}
	switch {
	case res.StatusCode != http.StatusOK:
		err = &statusError{res.StatusCode, backoff.RetryAfter(res.Header.Get("Retry-After"), time.Now())}
	case res.Uncompressed, res.Header.Get("Content-Encoding") != "":
		err = errFeedEncoded
	default:
		return res, nil
	}
	res.Body.Close()
	return nil, err
}

// readFeed reads lines until the last one, or until there is enough. It calls
// alive for every line.
func readFeed(body io.Reader, after Cursor, alive func()) (peerPage, error) {
	var page peerPage
	in := bufio.NewReaderSize(body, 64<<10)
	var line []byte
	for size := 0; size < peerBytes; size += len(line) {
		var err error
		if line, err = readFeedLine(in, line[:0]); err != nil {
			return page, err
		}
		alive()
		l, err := parseFeedLine(line)
		switch {
		case err != nil:
			return page, err
		case l.last && l.cursor != after:
			return page, errFeedOrder
		case l.last && !l.end && len(page.entries) == 0:
			return page, errFeedStands // or it would be asked again at once, for ever
		case l.last:
			page.end = l.end
			return page, nil
		case l.cursor <= after:
			return page, errFeedOrder
		case len(page.entries) == peerEntries:
			return page, errFeedMany
		}
		after = l.cursor
		page.entries = append(page.entries, l.feedEntry)
	}
	return page, nil
}

// readFeedLine appends a line to buf, without its line feed.
func readFeedLine(in *bufio.Reader, buf []byte) ([]byte, error) {
	for {
		part, err := in.ReadSlice('\n')
		if len(buf)+len(part) > peerLine {
			return buf, errFeedLong
		}
		buf = append(buf, part...)
		switch {
		case err == nil:
			return bytes.TrimSuffix(buf, []byte{'\n'}), nil
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return buf, errFeedTorn
		case !errors.Is(err, bufio.ErrBufferFull):
			return buf, err
		}
	}
}

// A feedLine is one line of a feed: an entry, or the last one.
type feedLine struct {
	feedEntry
	last, end bool
}

// parseFeedLine reads a line strictly, and copies what it keeps.
func parseFeedLine(line []byte) (feedLine, error) {
	var d strictjson.Doc
	if d.Reset(line, strictjson.Limits{Bytes: peerLine, Depth: 1, Values: 16, FoldedNames: true}) != nil {
		return feedLine{}, errFeedLine
	}
	members := 0
	text := func(name string) string {
		v := d.Root().Get(name)
		if v.Kind() == '"' {
			members++
		}
		return v.Text()
	}
	var l feedLine
	var ok bool
	l.position = strings.Clone(text("cursor"))
	if l.cursor, ok = parseCursor(l.position); !ok {
		return feedLine{}, errFeedLine
	}
	want := 4
	switch text("kind") {
	case lineAttestation:
	case lineRetract, lineReverse:
		l.event = true
	case lineEnd:
		l.last, l.end, want = true, true, 2
	case lineMore:
		l.last, want = true, 2
	default:
		return feedLine{}, errFeedLine
	}
	if !l.last {
		if l.hash, ok = targetHash(text("hash")); !ok {
			return feedLine{}, errFeedLine
		}
		l.original = []byte(text("original"))
	}
	if members != want || d.Root().Len() != want {
		return feedLine{}, errFeedLine
	}
	return l, nil
}
