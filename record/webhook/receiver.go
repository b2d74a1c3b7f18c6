// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/backoff"
	"github.com/pellucid-mcp/pellucid/platform/egress"
	"github.com/pellucid-mcp/pellucid/platform/loopback"
)

// Options are those of a Receiver.
type Options struct {
	Name    string
	URL     string // https, or http on this machine; a secret
	Secrets []Secret
	Types   []Type        // that it gets; nil: all
	Timeout time.Duration // of one attempt; 0: 10 seconds; MaxAttempt at the most

	// DangerouslyPrivateNetwork allows addresses that are not on the public network.
	DangerouslyPrivateNetwork bool
	// DangerouslyPlainHTTP allows http beyond this machine.
	DangerouslyPlainHTTP bool
}

// A Receiver is where messages go.
type Receiver struct {
	o      Options
	client *http.Client
}

// NewReceiver checks o. The error does not quote the URL.
func NewReceiver(o Options) (*Receiver, error) {
	u, err := url.Parse(o.URL)
	if err != nil {
		return nil, errors.New("the URL cannot be read")
	}
	plain := *u
	plain.RawQuery, plain.ForceQuery = "", false
	_, isPlain, err := egress.Base(plain.String(), o.DangerouslyPlainHTTP)
	switch {
	case err != nil:
		return nil, err
	case len(o.Secrets) == 0:
		return nil, errors.New("a secret is missing: a receiver could not know who sends")
	}
	if o.Timeout <= 0 {
		o.Timeout = 10 * time.Second
	}
	o.Timeout = min(o.Timeout, MaxAttempt)
	// http to this machine stays on it. Everything else goes to the public network, unless the
	// operator says otherwise: a name may lead to an address of the network that this machine is in.
	local := isPlain && loopback.Host(u.Hostname())
	t := egress.Transport(egress.Options{LoopbackOnly: local, PublicOnly: !local && !o.DangerouslyPrivateNetwork})
	return &Receiver{o: o, client: &http.Client{Transport: t, Timeout: o.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}, nil
}

// Name is that of the configuration.
func (r *Receiver) Name() string { return r.o.Name }

// Close lets go of its connections.
func (r *Receiver) Close() { r.client.CloseIdleConnections() }

// Wants reports whether it gets messages of a type.
func (r *Receiver) Wants(t Type) bool {
	return t == Test || r.o.Types == nil || slices.Contains(r.o.Types, t)
}

// Message makes the message that tells it e.
func (r *Receiver) Message(e Notice, a Approved) Message {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return Message{ID: "msg_" + hex.EncodeToString(b[:]), Receiver: r.o.Name, Type: e.Type, At: e.At.UTC(), Next: e.At.UTC(), Body: a.Body(e)}
}

// A Failure says why an attempt has failed: a constant, or "status-" and a number.
type Failure string

// The failures beside those of a status.
const (
	Redirected   Failure = "redirect"           // the receiver answers with a redirect, which is not followed
	Gone         Failure = "status-410"         // the receiver wants no more of it
	NoAnswer     Failure = "timeout"            // it did not answer in time
	NotPublic    Failure = "not-public-address" // its name leads into a private network
	NotLoopback  Failure = "not-this-machine"
	BadTLS       Failure = "certificate"
	Unreachable  Failure = "unreachable"
	NotDelivered Failure = "not-delivered" // no process has tried it: its receiver is not configured
)

// maxAnswer bounds what is read of an answer, so that its connection can be used again.
const maxAnswer = 4 << 10

// Send makes one attempt. It returns "" if the message has arrived; otherwise why it has not,
// and how long the receiver asks to be left alone.
func (r *Receiver) Send(ctx context.Context, m *Message, now time.Time) (Failure, time.Duration) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.o.URL, bytes.NewReader(m.Body))
	if err != nil {
		return Unreachable, 0
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "pellucid-webhook/1")
	req.Header.Set("webhook-id", m.ID)
	req.Header.Set("webhook-timestamp", strconv.FormatInt(now.Unix(), 10))
	req.Header.Set("webhook-signature", signature(r.o.Secrets, m.ID, now, m.Body))
	answer, err := r.client.Do(req)
	if err != nil {
		return failureOf(err), 0
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, maxAnswer) // the status counts, whatever follows it
	switch s := answer.StatusCode; {
	case s >= 200 && s < 300:
		return "", 0
	case s >= 300 && s < 400:
		return Redirected, 0
	default:
		return Failure("status-" + strconv.Itoa(s)), backoff.RetryAfter(answer.Header.Get("Retry-After"), now)
	}
}

func failureOf(err error) Failure {
	var timeout interface{ Timeout() bool }
	var cert *tls.CertificateVerificationError
	switch {
	case errors.Is(err, egress.ErrNotPublic):
		return NotPublic
	case errors.Is(err, egress.ErrNotLoopback):
		return NotLoopback
	case errors.As(err, &cert):
		return BadTLS
	case errors.As(err, &timeout) && timeout.Timeout():
		return NoAnswer
	}
	return Unreachable
}
