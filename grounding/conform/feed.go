// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
)

// A Feeder gives an adapter one signed attestation.
type Feeder interface {
	Ingest(ctx context.Context, attestation []byte) (Receipt, error)
}

// ParseFeeder reads how an adapter is fed: http=URL, where token is a bearer token or "",
// command=CMD, whose words are parted by blanks, or loaded.
func ParseFeeder(how, token string) (f Feeder, ok bool) {
	how, what, given := strings.Cut(how, "=")
	switch {
	case how == "loaded" && !given:
		return loaded{}, true
	case strings.TrimSpace(what) == "":
		return nil, false
	case how == "http":
		return HTTPFeeder{URL: what, Token: token}, true
	case how == "command":
		return commandFeeder(strings.Fields(what)), true
	}
	return nil, false
}

// loaded feeds nothing: somebody has loaded what attestations returns.
type loaded struct{}

// Ingest implements Feeder.
func (loaded) Ingest(context.Context, []byte) (Receipt, error) { return Receipt{unknown: true}, nil }

// maxReceipt bounds what is read of an adapter's reply to one attestation.
const maxReceipt = 64 << 10

// An HTTPFeeder posts one attestation as one JSON line. The reply is a JSON object,
// or its first line is one, with the members "accepted" (boolean) and "code". A
// status from 400 to 499 but 401, 403, 404 and 429 refuses the attestation
// whatever the reply holds; another status that is not 2xx is no result.
type HTTPFeeder struct {
	URL   string
	Token string
}

// Ingest implements Feeder.
func (f HTTPFeeder) Ingest(ctx context.Context, attestation []byte) (Receipt, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.URL, bytes.NewReader(append(attestation[:len(attestation):len(attestation)], '\n')))
	if err != nil {
		return Receipt{}, fmt.Errorf("conform: feed: %w", err)
	}
	req.Header.Set("Content-Type", "application/jsonl")
	res, err := bearer(f.Token).Do(req)
	if err != nil {
		return Receipt{}, fmt.Errorf("conform: feed: %w", err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxReceipt))
	if err != nil {
		return Receipt{}, fmt.Errorf("conform: feed: %w", err)
	}
	got := receipt(body)
	switch s := res.StatusCode; {
	case s >= 200 && s < 300:
		return got, nil
	case s >= 400 && s < 500 && s != 401 && s != 403 && s != 404 && s != 429:
		got.Accepted = false
		return got, nil
	}
	return Receipt{}, fmt.Errorf("conform: feed: status %d", res.StatusCode)
}

// receipt reads the first JSON object of a reply. A reply without "accepted"
// accepts, if it names no code.
func receipt(body []byte) Receipt {
	var r struct {
		Accepted *bool  `json:"accepted"`
		Code     string `json:"code"`
	}
	err := json.NewDecoder(bytes.NewReader(body)).Decode(&r)
	switch {
	case err != nil:
		return Receipt{Accepted: true}
	case r.Accepted != nil:
		return Receipt{Accepted: *r.Accepted, Code: r.Code}
	}
	return Receipt{Accepted: r.Code == "", Code: r.Code}
}

// A commandFeeder runs a command with the attestation on its standard input. Exit
// status 0 accepts and 1 refuses; the first word of its output is the code. Any
// other status is no result.
type commandFeeder []string

// Ingest implements Feeder.
func (f commandFeeder) Ingest(ctx context.Context, attestation []byte) (Receipt, error) {
	if len(f) == 0 {
		return Receipt{}, errors.New("conform: feed: no command")
	}
	cmd := exec.CommandContext(ctx, f[0], f[1:]...)
	cmd.Stdin = bytes.NewReader(attestation)
	out := &limited{left: maxReceipt}
	cmd.Stdout = out
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return Receipt{Accepted: true}, nil
	case errors.As(err, &exit) && exit.ExitCode() == 1:
		word, _, _ := strings.Cut(strings.TrimSpace(out.b.String()), " ")
		return Receipt{Code: word}, nil
	}
	return Receipt{}, fmt.Errorf("conform: feed: %w", err)
}

// limited keeps the first bytes and takes all.
type limited struct {
	b    bytes.Buffer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.b.Write(p[:n])
	l.left -= n
	return len(p), nil
}
