// SPDX-License-Identifier: Apache-2.0

// Package witness sends checkpoints of a log to witnesses and collects their cosignatures.
//
// A witness (C2SP tlog-witness) signs a checkpoint only if the log has grown from the last checkpoint
// that it signed. A reader who asks for the cosignatures of several witnesses knows that other readers
// are shown the same log. A [Policy] says which cosignatures are enough. No answer of a witness is
// believed before its signature is checked.
package witness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/egress"
	"github.com/pellucid-mcp/pellucid/record/ledger"
)

// The errors of a witness, to be compared with errors.Is. They hold no text of the witness.
var (
	ErrUnknownLog = errors.New("witness: it does not know the log: register the log's public key with it (404)")
	ErrKey        = errors.New("witness: it does not trust the key that signed the checkpoint (403)")
	ErrProof      = errors.New("witness: it does not accept the proof that the log has grown from what it signed (422)")
	ErrForked     = errors.New("witness: it has signed another log of this size (409)")
	ErrAnswer     = errors.New("witness: its answer is not spelled as tlog-witness has it")
	ErrCosigned   = errors.New("witness: its answer holds no cosignature of its key for this checkpoint")
	ErrAway       = errors.New("witness: it cannot be reached")
)

// An Ahead is the error of a witness that has signed a larger log than the one that it was sent.
type Ahead struct{ Size int64 }

func (a *Ahead) Error() string {
	return fmt.Sprintf("witness: it has signed a log of %d records, which is larger", a.Size)
}

// Bounds of a request.
const (
	maxAnswer = 64 << 10
	askWait   = 10 * time.Second
)

// A Client asks one witness.
type Client struct {
	Name   string
	key    *ledger.Witness
	url    string
	client *http.Client
	old    int64 // size of the log that the witness signed last, as far as is known
}

// NewClient makes a Client of a witness with the URL of its submission prefix: https, or http on this
// machine.
func NewClient(w Witness) (*Client, error) {
	base, plain, err := egress.Base(w.URL, false)
	if err != nil {
		return nil, fmt.Errorf("witness: %w", err)
	}
	return &Client{Name: w.Key.Name(), key: w.Key, url: base + "/add-checkpoint",
		client: &http.Client{Transport: egress.Transport(egress.Options{LoopbackOnly: plain}), Timeout: askWait,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}, nil
}

// Cosign has the witness sign a checkpoint, and returns its cosignatures: lines that end in a line feed,
// whose signatures hold. The source proves that the log has grown. An *Ahead says that the witness has
// signed more than that checkpoint has.
func (c *Client) Cosign(ctx context.Context, src ledger.Source, checkpoint []byte) ([]byte, error) {
	now, err := ledger.UnverifiedCheckpoint(checkpoint)
	if err != nil {
		return nil, err
	}
	for try := 0; ; try++ {
		if c.old > now.Size {
			c.old = 0 // what was known is of another time: the witness says where it stands
		}
		lines, size, err := c.ask(ctx, src, now, checkpoint)
		switch {
		case err != nil:
			return nil, err
		case lines != nil:
			c.old = now.Size
			return lines, nil
		case size > now.Size:
			return nil, &Ahead{size}
		case size == c.old:
			return nil, ErrForked
		case try == 2: // another process asks the same witness meanwhile
			return nil, ErrAway
		}
		c.old = size
	}
}

// ask sends the checkpoint once. The answer is lines, the size that the witness knows, or an error.
func (c *Client) ask(ctx context.Context, src ledger.Source, now ledger.Checkpoint, checkpoint []byte) (lines []byte, size int64, err error) {
	path, err := ledger.ProveConsistency(ctx, src, c.old, now)
	if err != nil {
		return nil, 0, err
	}
	if c.old == now.Size {
		path = nil
	}
	body := fmt.Appendf(nil, "old %d\n", c.old)
	for _, h := range path {
		body = append(append(body, h.String()...), '\n')
	}
	body = append(append(body, '\n'), checkpoint...)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, 0, fmt.Errorf("witness: %w", err)
	}
	req.Header.Set("Content-Type", "text/plain; charset=utf-8")
	resp, err := c.client.Do(req)
	if err != nil {
		return nil, 0, ErrAway // the cause quotes the URL, and may quote what a proxy says
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, 0, ErrAway
	}
	switch resp.StatusCode {
	case http.StatusOK:
		lines, err = ReadCosignatures(answer, checkpoint, c.key)
		return lines, 0, err
	case http.StatusConflict:
		if size, ok := readSize(resp.Header.Get("Content-Type"), answer); ok {
			return nil, size, nil
		}
		if c.old == now.Size {
			return nil, 0, ErrForked
		}
		return nil, 0, ErrAnswer
	case http.StatusNotFound:
		return nil, 0, ErrUnknownLog
	case http.StatusForbidden:
		return nil, 0, ErrKey
	case http.StatusUnprocessableEntity:
		return nil, 0, ErrProof
	}
	return nil, 0, fmt.Errorf("witness: it answered with status %d", resp.StatusCode)
}

// maxSize bounds the size of a log that a witness may claim to have signed: that of tlog-tiles.
const maxSize = 1 << 48

// readSize reads the body of a 409: a size in decimal, and a line feed.
func readSize(contentType string, body []byte) (int64, bool) {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil || kind != "text/x.tlog.size" || len(body) > 32 {
		return 0, false
	}
	text := strings.TrimSuffix(string(body), "\n")
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n >= 0 && n < maxSize && strconv.FormatInt(n, 10) == text
}

var signaturePrefix = []byte("\u2014 ")

// maxLines bounds the signature lines of an answer.
const maxLines = 64

// ReadCosignatures reads the answer of a witness to a checkpoint, and returns the line that is its
// cosignature. It passes over lines of other keys, as tlog-witness demands, and over a second line of
// the same key.
func ReadCosignatures(answer, checkpoint []byte, w *ledger.Witness) ([]byte, error) {
	if len(answer) > maxAnswer || len(answer) == 0 || answer[len(answer)-1] != '\n' {
		return nil, ErrAnswer
	}
	text, _, ok := bytes.Cut(checkpoint, []byte("\n\n"))
	if !ok {
		return nil, ErrAnswer
	}
	signed := append(bytes.Clone(text), '\n')
	n := 0
	for line := range bytes.Lines(answer) {
		if n++; n > maxLines || !bytes.HasPrefix(line, signaturePrefix) {
			return nil, ErrAnswer
		}
		if w.Signed(signed, line) {
			return bytes.Clone(line), nil
		}
	}
	return nil, ErrCosigned
}
