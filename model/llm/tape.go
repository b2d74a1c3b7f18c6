// SPDX-License-Identifier: Apache-2.0

package llm

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/pellucid-mcp/pellucid/model/format"
)

// A Recorder writes the exchanges of any number of endpoints to one cassette. Keys are not written: no header of a request is, and where an
// answer repeats the key, it is masked.
type Recorder struct {
	mu  sync.Mutex
	w   io.Writer
	err error
}

// NewRecorder begins a cassette on w. It writes whole lines, one call of Write each.
func NewRecorder(w io.Writer) *Recorder {
	rec := &Recorder{w: w}
	rec.write([]byte(first + "\n"))
	return rec
}

// Err is the first error of the writer. Nothing is written after it, but exchanges
// are carried on: whoever wants the cassette asks in the end.
func (rec *Recorder) Err() error {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	return rec.err
}

func (rec *Recorder) write(line []byte) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if rec.err == nil {
		_, rec.err = rec.w.Write(line)
	}
}

// A recorderOver records what next carries.
type recorderOver struct {
	*Recorder
	next http.RoundTripper
}

// RoundTrip carries an exchange and writes it down when its answer is closed.
func (rec recorderOver) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	req.Body.Close()
	if err != nil {
		return nil, err
	}
	sent := req.Clone(req.Context())
	sent.Body = io.NopCloser(bytes.NewReader(body))
	entry := &recording{path: pathOf(req.URL.EscapedPath()), request: body}
	secret := secretOf(req.Header)
	if secret != "" && bytes.Contains(body, []byte(secret)) {
		return nil, failure(CodeRequest) // a conversation that holds the key is not for a file
	}
	resp, err := rec.next.RoundTrip(sent)
	if err != nil {
		entry.end = endOf(req.Context(), classify(req.Context(), err))
		rec.write(entry.appendLine(nil))
		return nil, err
	}
	entry.status = resp.StatusCode
	for _, name := range kept {
		for _, v := range resp.Header.Values(name) {
			entry.header = append(entry.header, [2]string{name, mask(v, secret)})
			break // a second one is a fault that replay need not repeat
		}
	}
	resp.Body = &recorded{ReadCloser: resp.Body, ctx: req.Context(), entry: entry, secret: secret, done: rec.write}
	return resp, nil
}

// pathOf is the path of the format in that of a URL.
func pathOf(urlPath string) string {
	const model = "\x00" // of a format that names it in the path
	for _, f := range format.All {
		for _, stream := range []bool{false, true} {
			path, _, _ := strings.Cut(f.Path(model, stream), "?")
			before, behind, named := strings.Cut(path, model)
			switch at := strings.LastIndex(urlPath, before); {
			case !named && strings.HasSuffix(urlPath, path):
				return path
			case named && at >= 0 && strings.HasSuffix(urlPath[at+len(before):], behind):
				return urlPath[at:]
			}
		}
	}
	if i := strings.LastIndex(urlPath, "/model/"); i >= 0 { // a format that names the model there
		return urlPath[i:]
	}
	return urlPath
}

// secretOf is the key that a request is signed with.
func secretOf(h http.Header) string {
	secret := strings.TrimPrefix(h.Get("Authorization"), "Bearer ")
	for _, name := range []string{"X-Api-Key", "X-Goog-Api-Key", "Api-Key"} {
		secret = cmp.Or(secret, h.Get(name))
	}
	if len(secret) < 8 {
		return "" // "x" or "none", for servers that want any: no secret, and in every text
	}
	return secret
}

func mask(s, secret string) string {
	if secret == "" {
		return s
	}
	return strings.ReplaceAll(s, secret, strings.Repeat("*", len(secret)))
}

func endOf(ctx context.Context, e *Error) string {
	switch {
	case ctx.Err() != nil || e.Code == CodeTimeout:
		return endTimeout
	case e.Code == CodeCertificate:
		return endCertificate
	}
	return endUnreachable
}

// A recorded is the body of an answer, written down when it is closed.
type recorded struct {
	io.ReadCloser
	ctx    context.Context
	entry  *recording
	secret string
	done   func(line []byte)
}

func (b *recorded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.entry.answer = append(b.entry.answer, p[:n]...)
	if err != nil && b.entry.end == "" {
		switch {
		case err == io.EOF:
			b.entry.end = endWhole
		case b.ctx.Err() != nil:
			b.entry.end = endTimeout
		default:
			b.entry.end = endCut
		}
	}
	return n, err
}

func (b *recorded) Close() error {
	err := b.ReadCloser.Close()
	if b.done == nil {
		return err
	}
	if b.entry.end == "" {
		b.entry.end = endStopped
	}
	b.entry.answer = []byte(mask(string(b.entry.answer), b.secret))
	b.done(b.entry.appendLine(nil))
	b.done = nil
	return err
}

// A Tape answers from a cassette and from nothing else: a request that no recording
// is left of is an error of CodeNotOnTape. Recordings of the same request are played
// in their order, each once. With a Tape an Endpoint waits for nothing, shuts nobody
// out and reads no key. It may be used by several endpoints.
type Tape struct {
	mu   sync.Mutex
	left map[cassetteKey][]recording
}

// Play reads a cassette. The error is a *CassetteError or that of r.
func Play(r io.Reader) (*Tape, error) {
	t := &Tape{left: map[cassetteKey][]recording{}}
	err := readCassette(r, func(rec recording) {
		key := keyOf(rec.path, rec.request)
		t.left[key] = append(t.left[key], rec)
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// Left is the number of recordings that were not played.
func (t *Tape) Left() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for _, recs := range t.left {
		n += len(recs)
	}
	return n
}

// A player is the transport of a Tape.
type player struct{ *Tape }

// RoundTrip plays the next recording of req.
func (t player) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	req.Body.Close()
	if err != nil {
		return nil, err
	}
	key := keyOf(pathOf(req.URL.EscapedPath()), body)
	t.mu.Lock()
	recs := t.left[key]
	if len(recs) > 0 {
		t.left[key] = recs[1:]
	}
	t.mu.Unlock()
	if len(recs) == 0 {
		return nil, failure(CodeNotOnTape)
	}
	rec := recs[0]
	if rec.status == 0 {
		return nil, playedError(rec.end)
	}
	h := http.Header{}
	for _, kv := range rec.header {
		h.Set(kv[0], kv[1])
	}
	return &http.Response{
		StatusCode: rec.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: h, ContentLength: -1,
		Body: io.NopCloser(&played{bytes.NewReader(rec.answer), rec.end}), Request: req,
	}, nil
}

// playedError is the error that an exchange ended with.
func playedError(end string) error {
	switch end {
	case endTimeout, endStopped:
		return failure(CodeTimeout)
	case endCertificate:
		return failure(CodeCertificate)
	}
	return &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("on the tape")}
}

// A played is a recorded answer, with the end that it had.
type played struct {
	r   *bytes.Reader
	end string
}

func (p *played) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	if err != io.EOF {
		return n, err
	}
	switch p.end {
	case endWhole:
		return n, io.EOF
	case endTimeout:
		return n, failure(CodeTimeout)
	}
	return n, io.ErrUnexpectedEOF
}
