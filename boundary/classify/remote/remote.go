// SPDX-License-Identifier: Apache-2.0

// Package remote asks classifiers of injections that are services, each in its documented wire format.
package remote

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/platform/egress"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A Secret reads a key when it is needed, and its caller keeps it nowhere.
type Secret func() (string, error)

// Service is where a classifier is, and how it is told who asks. URL is https, or
// of this machine.
type Service struct {
	URL string
	Key Secret // nil: none is sent
	// DangerouslyPlainHTTP allows http to any host.
	DangerouslyPlainHTTP bool

	// Transport stands in for the network in tests; nil: the network.
	Transport http.RoundTripper
}

// maxAnswer is the longest answer that is read, in bytes.
const maxAnswer = 1 << 20

// A statusError is any status but 200. Which one says nothing that a caller could act
// on, and the body is the service's.
type statusError int

func (s statusError) Error() string {
	return fmt.Sprintf("remote: the service answered with status %d", int(s))
}
func (s statusError) Unwrap() error { return classify.ErrRefused }

var (
	errReach   = errors.New("remote: the service cannot be reached")
	errKey     = errors.New("remote: the key cannot be read")
	errRequest = errors.New("remote: the request cannot be made")
)

// malformed says of what an answer is not one: a constant.
func malformed(what string) error { return fmt.Errorf("remote: %s: %w", what, classify.ErrMalformed) }

func contrary(what string) error { return fmt.Errorf("remote: %s: %w", what, classify.ErrContrary) }

// A caller posts JSON to a service.
type caller struct {
	base   string
	key    Secret
	client *http.Client
	// sign puts the key where the service wants it, after all else of the request is
	// as it will be sent.
	sign func(req *http.Request, body []byte, key string) error
}

func newCaller(s Service, sign func(*http.Request, []byte, string) error) (*caller, error) {
	base, plain, err := egress.Base(s.URL, s.DangerouslyPlainHTTP)
	if err != nil {
		return nil, fmt.Errorf("remote: %w", err)
	}
	t := s.Transport
	if t == nil {
		t = egress.Transport(egress.Options{LoopbackOnly: plain && !s.DangerouslyPlainHTTP, Idle: 8})
	}
	return &caller{base, s.Key, &http.Client{Transport: t, Timeout: time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, sign}, nil
}

// bearer signs as RFC 6750 says.
func bearer(req *http.Request, _ []byte, key string) error {
	req.Header.Set("Authorization", "Bearer "+key)
	return nil
}

// post returns the root of the answer, which lives as long as doc.
func (c *caller) post(ctx context.Context, path string, body []byte, doc *strictjson.Doc) (strictjson.Value, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+path, bytes.NewReader(body))
	if err != nil {
		return strictjson.Value{}, errRequest // the cause may quote the path
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "pellucid")
	if c.key != nil {
		key, err := c.key()
		if err != nil || key == "" {
			return strictjson.Value{}, errKey
		}
		if err := c.sign(req, body, key); err != nil {
			return strictjson.Value{}, errRequest
		}
	}
	resp, err := c.client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return strictjson.Value{}, ctx.Err()
		}
		return strictjson.Value{}, errReach // the cause may hold what the service has sent
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return strictjson.Value{}, statusError(resp.StatusCode)
	}
	if t, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return strictjson.Value{}, malformed("not JSON")
	}
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case ctx.Err() != nil:
		return strictjson.Value{}, ctx.Err()
	case err != nil:
		return strictjson.Value{}, errReach
	case len(answer) > maxAnswer:
		return strictjson.Value{}, malformed("answer too long")
	}
	if err := doc.Reset(answer, strictjson.Limits{}); err != nil || doc.Root().Kind() != '{' {
		return strictjson.Value{}, malformed("not a JSON object")
	}
	return doc.Root(), nil
}

// yes is the score of a service that says only yes or no.
func yes(flagged bool, code classify.Code) classify.Score {
	if !flagged {
		return classify.Score{}
	}
	return classify.Score{P: 1, Flagged: true, Code: code}
}

// alone is for services that judge one text a call.
func alone(texts []string) (string, error) {
	if len(texts) != 1 {
		return "", errRequest
	}
	return texts[0], nil
}

// version is a label of a service's version and of all else that its answers depend
// on: the parts, or what can be shown of them and a digest. What is empty at the end is
// what nobody has configured.
func version(parts ...string) string {
	for len(parts) > 1 && parts[len(parts)-1] == "" {
		parts = parts[:len(parts)-1]
	}
	plain := strings.Join(parts, "-")
	if v := classify.CodeOf(plain); string(v) == plain {
		return plain
	}
	sum := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(sum, "%d:%s", len(p), p)
	}
	shown := strings.Map(func(r rune) rune {
		if classify.CodeOf(string(r)) != classify.Code(r) {
			return '_'
		}
		return r
	}, plain)
	return shown[:min(len(shown), 47)] + "-" + hex.EncodeToString(sum.Sum(nil)[:8])
}
