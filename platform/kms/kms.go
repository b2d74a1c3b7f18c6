// SPDX-License-Identifier: Apache-2.0

// Package kms decrypts a secret with a key of AWS KMS (JSON 1.1, TrentService.Decrypt).
//
// It is asked once, when a process starts: the secret that comes back is kept in memory alone.
package kms

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/backoff"
	"github.com/pellucid-mcp/pellucid/platform/egress"
	"github.com/pellucid-mcp/pellucid/platform/sigv4"
)

// The errors of Decrypt, to be compared with errors.Is. They hold no text of the service.
var (
	ErrAway       = errors.New("kms: the service cannot be reached, or fails")
	ErrThrottled  = errors.New("kms: the service refuses because of too many requests")
	ErrDenied     = errors.New("kms: the service refuses: the credentials are wrong, or their policy does not allow kms:Decrypt with this key")
	ErrCiphertext = errors.New("kms: the encrypted key is damaged, or was encrypted with another key or context")
	ErrKey        = errors.New("kms: the key of the service does not exist, is disabled, or is about to be deleted")
	ErrAnswer     = errors.New("kms: the answer is not spelled as the service's documentation has it")
)

// Bounds of the work.
const (
	maxAnswer     = 64 << 10
	maxCiphertext = 6144 // bytes: the limit of the service
	askWait       = 5 * time.Second
	tries         = 5
)

// A Client asks the service.
type Client struct {
	url    string
	client *http.Client
	pause  time.Duration // before a second request; tests shorten it
}

// New makes a Client for the service at url, "" for that of the signer's region: https, or http on this
// machine.
func New(url string, s *sigv4.Signer) (*Client, error) {
	if url == "" {
		url = "https://kms." + s.Region + ".amazonaws.com"
	}
	base, plain, err := egress.Base(url, false)
	if err != nil {
		return nil, fmt.Errorf("kms: %w", err)
	}
	signer := *s
	signer.Service = "kms"
	return &Client{base + "/", &http.Client{Transport: signer.Transport(egress.Transport(egress.Options{LoopbackOnly: plain})), Timeout: askWait,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, 500 * time.Millisecond}, nil
}

// Decrypt returns the secret of a ciphertext in base64. Where the service is away or throttles, it asks
// again, five times within some seconds.
func (c *Client) Decrypt(ctx context.Context, ciphertext string) ([]byte, error) {
	blob, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(ciphertext), ""))
	if err != nil || len(blob) == 0 || len(blob) > maxCiphertext {
		return nil, ErrCiphertext
	}
	body, err := json.Marshal(map[string]any{"CiphertextBlob": blob})
	if err != nil {
		return nil, err
	}
	pause := backoff.Waits{First: c.pause, Most: 4 * time.Second}
	for try := 1; ; try++ {
		secret, err := c.ask(ctx, body)
		if err == nil || try == tries || !errors.Is(err, ErrAway) && !errors.Is(err, ErrThrottled) || ctx.Err() != nil {
			return secret, err
		}
		if backoff.Sleep(ctx, pause.Next()) != nil {
			return nil, err
		}
	}
}

func (c *Client) ask(ctx context.Context, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("kms: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-amz-json-1.1")
	req.Header.Set("X-Amz-Target", "TrentService.Decrypt")
	resp, err := c.client.Do(req)
	if err != nil {
		if errors.Is(err, sigv4.ErrKeys) {
			return nil, sigv4.ErrKeys
		}
		return nil, ErrAway // the cause quotes the URL
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, ErrAway
	}
	return read(resp.StatusCode, answer)
}

// read reads an answer of the service.
func read(status int, answer []byte) ([]byte, error) {
	var said struct {
		Type      string `json:"__type"`
		Plaintext []byte
	}
	if len(answer) > maxAnswer {
		return nil, ErrAnswer
	}
	bad := json.Unmarshal(answer, &said) != nil
	if status == http.StatusOK {
		if bad || len(said.Plaintext) == 0 {
			return nil, ErrAnswer
		}
		return said.Plaintext, nil
	}
	name := said.Type[strings.LastIndexByte(said.Type, '#')+1:] // a namespace may stand before it
	if err := faults[name]; err != nil && !bad {
		return nil, err
	}
	switch {
	case status == http.StatusTooManyRequests:
		return nil, ErrThrottled
	case status >= 500:
		return nil, ErrAway
	case status == http.StatusForbidden, status == http.StatusUnauthorized:
		return nil, ErrDenied
	}
	return nil, fmt.Errorf("kms: the service answered with status %d", status)
}

// faults are the errors of the service by their names.
var faults = map[string]error{
	"ThrottlingException":         ErrThrottled,
	"LimitExceededException":      ErrThrottled,
	"AccessDeniedException":       ErrDenied,
	"UnrecognizedClientException": ErrDenied,
	"InvalidSignatureException":   ErrDenied,
	"ExpiredTokenException":       ErrDenied,
	"IncompleteSignature":         ErrDenied,
	"InvalidCiphertextException":  ErrCiphertext,
	"IncorrectKeyException":       ErrCiphertext,
	"NotFoundException":           ErrKey,
	"DisabledException":           ErrKey,
	"KMSInvalidStateException":    ErrKey,
	"InvalidKeyUsageException":    ErrKey,
	"KeyUnavailableException":     ErrAway,
	"DependencyTimeoutException":  ErrAway,
	"KMSInternalException":        ErrAway,
}
