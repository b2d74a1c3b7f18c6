// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/pellucid-mcp/pellucid/text/finding"
)

// openEndpoint returns the URL for messages and the number of the stream, which it opens if none is open.
func (c *SSE) openEndpoint(ctx context.Context) (string, int, *refusal) {
	select {
	case <-c.opener:
	case <-ctx.Done():
		return "", 0, refuse(codeUnreachable, ErrClosed)
	}
	defer func() { c.opener <- struct{}{} }()
	c.mu.Lock()
	to, stream := c.postURL, c.streams
	past := c.past.Clone()
	c.mu.Unlock()
	if to != "" {
		return to, stream, nil
	}
	to, r := c.openStream()
	if r == nil && past.Version != "" {
		r = c.repeatHandshake(to, past)
	}
	return to, stream + 1, r
}

// openStream opens the stream and waits for its first event.
func (c *SSE) openStream() (string, *refusal) {
	ctx, cancel := context.WithCancel(c.live)
	late := time.AfterFunc(endpointWait, cancel)
	er, body, r := c.requestStream(ctx)
	to := ""
	if r == nil {
		if to, r = c.readEndpoint(er); r != nil {
			body.Close()
		}
	}
	if !late.Stop() && r == nil {
		body.Close()
		r = refuse(codeCut, errors.New("wire: no endpoint in time"))
	}
	if r != nil {
		cancel()
		return "", r
	}
	c.mu.Lock()
	c.postURL, c.drop = to, cancel
	c.streams++
	n := c.streams
	c.mu.Unlock()
	if !c.begin(func() { defer cancel(); defer body.Close(); c.listen(er, n) }) {
		cancel()
		body.Close()
		return "", refuse(codeUnreachable, ErrClosed)
	}
	return to, nil
}

// repeatHandshake repeats the handshake on a new stream.
func (c *SSE) repeatHandshake(to string, past *Handshake) *refusal {
	ctx, stop := context.WithTimeout(c.live, renewWait)
	defer stop()
	changed, err := past.Replay(ctx, greeting{c, to}, false)
	if err != nil {
		c.mu.Lock()
		stream := c.streams
		c.mu.Unlock()
		c.abandonStream(stream)
		return sessionRefusal(err)
	}
	c.opt.notice("the stream of the server had ended: there is a new one, with a new session")
	c.to.announce(c.live, nil, changed)
	return nil
}

// greeting is the server behind a new stream, whose messages are posted to that URL.
type greeting struct {
	*SSE
	endpoint string
}

// Ask implements Greeted.
func (c greeting) Ask(ctx context.Context, m *Message) (*Message, error) {
	answer := make(chan *Message, 1)
	c.mu.Lock()
	c.waiting[m.ID] = answer
	c.mu.Unlock()
	defer c.claimAnswer(m.ID)
	if err := c.Notify(ctx, m); err != nil {
		return nil, err
	}
	select {
	case a := <-answer:
		if a != nil {
			return a, nil
		}
		return nil, errStreamEnded
	case <-ctx.Done():
		return nil, errNotInitialized
	}
}

// Notify implements Greeted.
func (c greeting) Notify(ctx context.Context, m *Message) error {
	if _, r := c.post(ctx, c.endpoint, m); r != nil {
		return r
	}
	return nil
}

// requestStream requests the stream and checks the header of the response.
func (c *SSE) requestStream(ctx context.Context) (*eventReader, io.Closer, *refusal) {
	resp, r := c.opt.roundTrip(ctx, true, func() (*http.Response, error) {
		req, err := c.request(ctx, http.MethodGet, c.url.String(), nil)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Accept", "text/event-stream")
		return c.client.Do(req)
	})
	if r != nil {
		return nil, nil, r
	}
	switch {
	case resp.StatusCode != http.StatusOK:
		r = statusRefusal(resp)
	case mediaType(resp) != "text/event-stream":
		r = refuse(codeBadAnswer, fmt.Errorf("wire: a stream with content type %s", finding.Quote(mediaType(resp))))
	}
	er := newEvents(ctx, nil, c.opt.Limits, c.opt.newRoom)
	if r == nil {
		var body io.Reader
		var err error
		if body, err = decompress(resp); err == nil {
			er.R = heldReader{body, er}
			return er, resp.Body, nil
		}
		r = bodyRefusal(err)
	}
	resp.Body.Close()
	return nil, nil, r
}

// readEndpoint reads the event that names the endpoint.
func (c *SSE) readEndpoint(er *eventReader) (string, *refusal) {
	ev, err := er.Next()
	if err != nil {
		return "", refuse(codeCut, errors.New("wire: no endpoint: "+quoteError(err)))
	}
	defer er.own(ev).Release()
	if ev.Name != "endpoint" {
		return "", refuse(codeBadAnswer, errors.New("wire: the first event does not name the endpoint"))
	}
	to, err := c.url.Parse(string(ev.Data))
	if err != nil || to.Scheme != c.url.Scheme || to.Host != c.url.Host || to.User != nil {
		return "", refuse(codeBadAnswer, errors.New("wire: the endpoint is not of the server's own origin"))
	}
	return to.String(), nil
}
