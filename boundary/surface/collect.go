// SPDX-License-Identifier: Apache-2.0

package surface

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// CollectOptions shape Collect. The zero value is the strict default.
type CollectOptions struct {
	limits Limits
	// Timeout bounds the wait for one answer; 0 = 30 s. Bound the whole by ctx.
	Timeout time.Duration
	// Legacy leaves out the question whether the server speaks 2026-07-28.
	Legacy bool
	// once believes the first listing. Otherwise everything is listed until two
	// listings in succession agree, three times at most; then what differs in an item is for the Gate.
	once bool
	// Bare asks as a client without capabilities; else it is one that has all by which
	// servers decide what they offer. What they ask of it is declined all the same.
	Bare bool
	// withoutApps asks as a client that lacks the extension Apps and has all the others.
	withoutApps bool
	// Version is the client's own, as it introduces itself.
	Version string
}

const (
	// maxChatter bounds the messages that come instead of an answer.
	maxChatter = 1000
	// maxListings bounds how often a server is asked for the same.
	maxListings = 3
)

// Collect talks to a server over a fresh Conn, in the era that the server speaks,
// and lists its surface. It calls no tool, answers ping and declines whatever else
// the server asks. It does not close c, which is of no further use to a legacy
// client: the handshake is done. The error is ctx's or a *RefusedError.
func Collect(ctx context.Context, c wire.ReadConn, opt CollectOptions) (*Surface, error) {
	if opt.Timeout <= 0 {
		opt.Timeout = 30 * time.Second
	}
	t := &talk{conn: c, opt: opt}
	t.others = t.declined
	method, hello, err := t.hello(ctx)
	if err != nil {
		return nil, err
	}
	return t.gather(ctx, method, hello)
}

// gather is gather by a client of our own.
func (t *talk) gather(ctx context.Context, method string, hello []byte) (*Surface, error) {
	s, err := gather(ctx, method, hello, t.ask, t.opt)
	if err == nil {
		s.able = setOf(t.capabilities())
	}
	return s, err
}

// capabilities are those of a client of our own.
func (t *talk) capabilities() string {
	switch {
	case t.opt.Bare:
		return "{}"
	case t.opt.withoutApps:
		return plainCapabilities
	}
	return ableCapabilities
}

// An ask puts one request to a server, whose conversation is open: a list's method,
// with a cursor if that is not "", or resources/read, with a URI. It returns the result. Where the server answers
// with an error it returns an *AnswerError.
type ask func(ctx context.Context, method, cursor string) (result []byte, err error)

// An AnswerError is an error with which a server answered.
type AnswerError struct {
	code    int64
	message string
}

func answerError(m *wire.Message) *AnswerError {
	code, _ := m.Error.Get("code").Int64()
	return &AnswerError{code, strings.Clone(m.Error.Get("message").Text())}
}

// Error is for the operator.
func (e *AnswerError) Error() string {
	return fmt.Sprintf("error %d, %s", e.code, finding.Quote(e.message))
}

// gather is Collect for whoever holds the conversation: method, which is initialize
// or server/discover, has been answered by hello. The error is ask's or a
// *RefusedError.
func gather(ctx context.Context, method string, hello []byte, ask ask, opt CollectOptions) (*Surface, error) {
	var last *Surface
	for i := range maxListings {
		b := newBuilder(opt.limits)
		if _, err := b.add(method, "", hello); err != nil {
			return nil, err
		}
		for i := range lists {
			if err := gatherList(ctx, b, lists[i].method, ask); err != nil {
				return nil, err
			}
		}
		s, err := b.surface()
		if err != nil {
			return nil, err
		}
		settled := opt.once
		if last != nil {
			s.earlier = s.itemsDiffering(last)
			settled = settled || last.print == s.print || i == maxListings-1 && s.sameKeys(last)
		}
		if settled {
			return s.withApps(ctx, ask, opt.limits)
		}
		last = s
	}
	return nil, &RefusedError{Unsettled, "", nil}
}

// itemsDiffering returns the other versions that earlier listings had of items of s.
func (s *Surface) itemsDiffering(last *Surface) (earlier []Item) {
	for _, it := range slices.Concat(last.earlier, last.items) {
		if now, there := s.Item(it.Key); there && now.Digest != it.Digest {
			earlier = append(earlier, it)
		}
	}
	return earlier
}

func (s *Surface) sameKeys(t *Surface) bool {
	return slices.EqualFunc(s.items, t.items, func(a, b Item) bool { return a.Key == b.Key })
}

// gatherList asks for one list, page by page, and leaves it to b to say that it is enough.
func gatherList(ctx context.Context, b *builder, method string, ask ask) error {
	for cursor := ""; ; {
		result, err := ask(ctx, method, cursor)
		var said *AnswerError
		if errors.As(err, &said) {
			if cursor != "" {
				return &RefusedError{Unfinished, method, said}
			}
			return b.refuse(method, said.code)
		}
		if err != nil {
			return err
		}
		if cursor, err = b.add(method, cursor, result); err != nil || cursor == "" {
			return err
		}
	}
}

// talk is one conversation.
type talk struct {
	conn   wire.ReadConn
	opt    CollectOptions
	modern bool
	id     int64
	// others is given what the server says beside answers, which it owns.
	others func(ctx context.Context, m *wire.Message) error
}

// hello opens the conversation in the newest era that the server speaks.
func (t *talk) hello(ctx context.Context) (method string, result []byte, err error) {
	if !t.opt.Legacy {
		if result, err = t.discover(ctx); t.modern || err != nil {
			return mcpmsg.Discover, result, err
		}
	}
	result, err = t.ask(ctx, mcpmsg.Initialize, "")
	var said *AnswerError
	switch {
	case errors.As(err, &said):
		return "", nil, &RefusedError{NoServer, mcpmsg.Initialize, wire.RefusedWith(said.code, said.message, said)}
	case err != nil:
		return "", nil, err
	}
	err = t.write(ctx, wire.NewRequest(wire.ID{}, mcpmsg.Initialized, nil))
	return mcpmsg.Initialize, result, err
}

// discover asks whether the server speaks the modern era, which modern is set by. The
// error is that nobody is left to ask anything else.
func (t *talk) discover(ctx context.Context) (result []byte, err error) {
	t.modern = true
	result, err = t.ask(ctx, mcpmsg.Discover, "")
	var said *AnswerError
	if errors.As(err, &said) && said.code == wire.CodeUnsupportedVersion {
		// It is of the modern era, and names the revisions that it would have instead;
		// there is one that it could mean.
		result, err = t.ask(ctx, mcpmsg.Discover, "")
	}
	if t.modern = err == nil && speaksModern(result); t.modern {
		return result, nil
	}
	if err != nil && (ctx.Err() != nil || isGone(err)) {
		return nil, err
	}
	return nil, nil // whatever a server does that does not know the question
}

// isGone reports whether there is nobody left to ask anything else.
func isGone(err error) bool {
	for _, gone := range []error{wire.ErrUnreachable, wire.ErrClosed, wire.ErrPeerClosed, io.EOF} {
		if errors.Is(err, gone) {
			return true
		}
	}
	return false
}

// speaksModern reports whether a result is that of server/discover of a server
// that speaks the modern era.
func speaksModern(result []byte) bool {
	var d strictjson.Doc
	if d.Reset(result, strictjson.Limits{MendSurrogates: true}) != nil {
		return false
	}
	for v := range d.Root().Get("supportedVersions").Elements() {
		if v.Text() == mcpmsg.Modern {
			return true
		}
	}
	return false
}

// params are those of a request in the era of the conversation.
func (t *talk) params(method, cursor string) []byte {
	version := t.opt.Version
	if version == "" {
		version = "0"
	}
	capabilities := t.capabilities()
	client := append(strictjson.AppendQuote([]byte(`{"name":"pellucid-check","version":`), version), '}')
	if method == mcpmsg.Initialize {
		return fmt.Appendf(nil, `{"protocolVersion":"%s","capabilities":%s,"clientInfo":%s}`, newestLegacy(), capabilities, client)
	}
	p := []byte{'{'}
	if method == mcpmsg.ReadResource {
		p = append(strictjson.AppendQuote(append(p, `"uri":`...), cursor), ',')
	} else if cursor != "" {
		p = append(strictjson.AppendQuote(append(p, `"cursor":`...), cursor), ',')
	}
	if t.modern {
		p = fmt.Appendf(p, `"_meta":{"%s":"%s","%s":%s,"%s":%s},`,
			mcpmsg.KeyVersion, mcpmsg.Modern, mcpmsg.KeyClientInfo, client, mcpmsg.KeyClientCaps, capabilities)
	}
	return closed(p, '}')
}

func newestLegacy() string {
	versions := wire.Versions()
	return versions[slices.IndexFunc(versions, func(v string) bool { return v < mcpmsg.Modern })]
}

// ask sends a request and returns a copy of its result. The error is ctx's, an
// *AnswerError or a *RefusedError.
func (t *talk) ask(ctx context.Context, method, cursor string) ([]byte, error) {
	all := ctx
	ctx, stop := context.WithTimeout(ctx, t.opt.Timeout)
	defer stop()
	t.id++
	out := wire.NewRequest(wire.IntID(t.id), method, t.params(method, cursor))
	if t.modern {
		out.Route.Version = mcpmsg.Modern
	}
	m, err := t.exchange(ctx, all, out)
	if err != nil {
		return nil, err
	}
	defer m.Release()
	if m.Kind == wire.ErrorResponse {
		return nil, answerError(m)
	}
	return bytes.Clone(m.Result.Raw()), nil
}

// exchange sends a request and returns its answer. ctx ends when that has taken too
// long, all when the caller does. The error is all's or a *RefusedError.
func (t *talk) exchange(ctx, all context.Context, out *wire.Message) (*wire.Message, error) {
	method, id := out.Method, out.ID
	if err := t.write(ctx, out); err != nil {
		return nil, lost(all, method, err)
	}
	for range maxChatter {
		m, err := t.conn.Read(ctx)
		var broken *wire.Violation
		switch {
		case errors.As(err, &broken) && broken.ID == id:
			return nil, &RefusedError{unread(broken, NotJSON), method, broken}
		case errors.As(err, &broken):
			continue
		case err != nil:
			return nil, lost(all, method, err)
		}
		switch {
		case m.Kind == wire.Request || m.Kind == wire.Notification:
			err = t.others(ctx, m)
		case m.ID != id:
			m.Release()
		case m.Local:
			err = &RefusedError{unread(m.Cause, NoAnswer), method, m.Cause}
			m.Release()
		default:
			return m, nil
		}
		if err != nil {
			return nil, lost(all, method, err)
		}
	}
	return nil, &RefusedError{Chatter, method, nil}
}

// declined answers ping, refuses whatever else the server asks, and has no use for
// what it tells.
func (t *talk) declined(ctx context.Context, m *wire.Message) error {
	defer m.Release()
	if m.Kind == wire.Notification {
		return nil
	}
	return t.decline(ctx, m)
}

// unread is the reason for which there is no answer to look at: another than usual if
// it is too long to be held.
func unread(err error, usual Reason) Reason {
	if errors.Is(err, wire.ErrTooLong) {
		return TooLarge
	}
	return usual
}

// decline answers what a server asks: ping, and nothing else.
func (t *talk) decline(ctx context.Context, m *wire.Message) error {
	out := wire.NewError(m.ID, fmt.Appendf(nil, `{"code":%d,"message":"method not found"}`, wire.CodeNoMethod))
	if m.Method == mcpmsg.Ping {
		out = wire.NewResult(m.ID, []byte("{}"))
	}
	out.Alias = m.Alias
	return t.write(ctx, out)
}

func (t *talk) write(ctx context.Context, out *wire.Message) error {
	method := out.Method
	if err := t.conn.Write(ctx, out); err != nil {
		return lost(ctx, method, err)
	}
	return nil
}

var errLate = errors.New("no answer in time")

// lost makes of an error what Collect returns: the caller's own end stays what it
// is, anything else is the server's.
func lost(ctx context.Context, method string, err error) error {
	var said *AnswerError
	var refused *RefusedError
	switch {
	case err == nil, errors.As(err, &said), errors.As(err, &refused):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		err = errLate
	}
	if listOf(method) == nil && method != mcpmsg.Initialize && method != mcpmsg.Discover {
		method = "" // a method that the server chose
	}
	return &RefusedError{NoAnswer, method, err}
}
