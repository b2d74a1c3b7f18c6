// SPDX-License-Identifier: Apache-2.0

// Package bucket reads and writes objects of a store that speaks S3, by path-style URLs.
package bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/egress"
	"github.com/pellucid-mcp/pellucid/platform/sigv4"
)

// The errors of a Bucket, to be compared with errors.Is. They hold no text of the service. One for an
// object that is not there is fs.ErrNotExist.
var (
	errNotFound = fmt.Errorf("bucket: there is no such object: %w", fs.ErrNotExist)
	ErrChanged  = fmt.Errorf("bucket: the object was changed meanwhile: %w", fs.ErrExist)
	ErrDenied   = errors.New("bucket: the service refuses the keys (403)")
	ErrAway     = errors.New("bucket: the service cannot be reached")
)

const requestWait = 30 * time.Second

// A Bucket is a prefix in a bucket. It is safe for concurrent use.
type Bucket struct {
	base   string
	client *http.Client
}

// New makes a Bucket of a URL of endpoint, bucket and prefix: https, or http on this machine.
func New(base string, s *sigv4.Signer) (*Bucket, error) {
	base, plain, err := egress.Base(base, false)
	if err != nil {
		return nil, fmt.Errorf("bucket: %w", err)
	}
	signer := *s
	signer.Service = "s3"
	return &Bucket{base: base, client: &http.Client{Timeout: requestWait,
		Transport:     signer.Transport(egress.Transport(egress.Options{LoopbackOnly: plain})),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}, nil
}

// Get reads an object of at most limit bytes, and its version, for a conditional Put.
func (b *Bucket) Get(ctx context.Context, path string, limit int64) (data []byte, version string, err error) {
	resp, err := b.do(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	data, err = io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch {
	case err != nil:
		return nil, "", ErrAway
	case int64(len(data)) > limit:
		return nil, "", fmt.Errorf("bucket: the object has more than %d bytes", limit)
	}
	return data, resp.Header.Get("ETag"), nil
}

// Has reports whether there is an object of that path.
func (b *Bucket) Has(ctx context.Context, path string) (bool, error) {
	resp, err := b.do(ctx, http.MethodHead, path, nil, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	resp.Body.Close()
	return true, nil
}

// Put writes an object with the headers with which it is to be served.
func (b *Bucket) Put(ctx context.Context, path string, data []byte, contentType, cacheControl string) error {
	return b.put(ctx, path, data, http.Header{"Content-Type": {contentType}, "Cache-Control": {cacheControl}})
}

// Replace is Put of an object that must still have that version; "": that must not exist. Where the
// service knows no conditional writes, the object is written in any case.
func (b *Bucket) Replace(ctx context.Context, path string, data []byte, contentType, cacheControl, version string) error {
	h := http.Header{"Content-Type": {contentType}, "Cache-Control": {cacheControl}}
	if version != "" {
		h.Set("If-Match", version)
	} else {
		h.Set("If-None-Match", "*")
	}
	err := b.put(ctx, path, data, h)
	if errors.Is(err, errUnsupported) {
		return b.Put(ctx, path, data, contentType, cacheControl)
	}
	return err
}

func (b *Bucket) put(ctx context.Context, path string, data []byte, h http.Header) error {
	resp, err := b.do(ctx, http.MethodPut, path, data, h)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// Delete removes an object. One that is not there is no error.
func (b *Bucket) Delete(ctx context.Context, path string) error {
	resp, err := b.do(ctx, http.MethodDelete, path, nil, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	return resp.Body.Close()
}

var errUnsupported = errors.New("bucket: the service does not know conditional writes (501)")

// do sends a request. The body of an answer that is an error is read and dropped.
func (b *Bucket) do(ctx context.Context, method, path string, data []byte, h http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, b.base+"/"+path, bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("bucket: %w", err)
	}
	for name, values := range h {
		req.Header[name] = values
	}
	resp, err := b.client.Do(req)
	if err != nil {
		if errors.Is(err, sigv4.ErrKeys) {
			return nil, sigv4.ErrKeys
		}
		return nil, ErrAway // the cause quotes the URL
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return resp, nil
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusNotFound:
		return nil, errNotFound
	case http.StatusPreconditionFailed, http.StatusConflict:
		return nil, ErrChanged
	case http.StatusForbidden, http.StatusUnauthorized:
		return nil, ErrDenied
	case http.StatusNotImplemented:
		return nil, errUnsupported
	}
	return nil, fmt.Errorf("bucket: the service answered with status %d", resp.StatusCode)
}
