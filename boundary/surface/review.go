// SPDX-License-Identifier: Apache-2.0

package surface

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/text/finding"
)

// A Question is one turn with a model that has no tools and no history.
type Question struct {
	System, User string
	Material     string // the part of User that is judged
	Tokens       int    // of System and User, an upper estimate
}

// An Answer is all that the model has said.
type Answer struct {
	Text string // third-party text: what the surface has made of the model, at worst
	// Whole says that the model ended by itself: it was neither cut off nor refused
	// nor wanted anything else. Whoever does not know leaves it false.
	Whole bool
}

// A Reviewer asks a model. Retries are its own affair; it returns when ctx ends.
type Reviewer interface {
	Review(ctx context.Context, q Question) (Answer, error)
}

// A Cache remembers what was approved. Its methods may be called at the same time.
type Cache interface {
	// GetVerdict returns the entry, nil if not found.
	GetVerdict(ctx context.Context, key Digest) ([]byte, error)
	PutVerdict(ctx context.Context, key Digest, entry []byte) error
}

// Review is pass 2. Reviewer and Model have to be set.
type Review struct {
	Reviewer  Reviewer
	Model     string // identifies the model, with whatever changes its judgement
	Transport string // descriptor of how the server is reached: command or URL
	Cache     Cache  // nil: nothing is remembered

	ChunkTokens int           // of material in one question; 0 = 24,000
	TotalTokens int           // of all questions; 0 = 2,000,000. A larger surface is rejected.
	Timeout     time.Duration // of one question; 0 = 2 min. Bound the whole by ctx.

	// Progress is called before every question; nil = nobody wants to know.
	Progress func(Step)
	// random is where delimiters come from; nil = crypto/rand.
	random io.Reader
}

// A Step says how far a review is.
type Step struct {
	Chunk, Chunks int // from 1
	Tokens        int // of this question, as estimated
}

// A Rejection says why pass 2 did not let a surface through.
type Rejection string

// The rejections. Everything but an OK is one of them.
const (
	Flagged      Rejection = "review-flagged"      // the reviewer did not say OK
	CutOff       Rejection = "review-cut-off"      // … or was not allowed to end
	ReviewFailed Rejection = "review-failed"       // no answer
	ReviewLate   Rejection = "review-timeout"      // not in time
	OverBudget   Rejection = "review-over-budget"  // the surface is too large to be reviewed
	NoReviewer   Rejection = "review-not-possible" // there is none
)

// A RejectedError is a surface that pass 2 did not let through.
type RejectedError struct {
	Why   Rejection
	chunk int // from 1, 0 if none was asked about
	// Said is what the reviewer answered, cut at 8 KiB: third-party text, for a person
	// and by finding.Quote or scrub.Visible.
	Said string
	err  error // of the reviewer, or nil
}

// Error holds nothing of what the reviewer said.
func (e *RejectedError) Error() string {
	s := "surface: rejected: " + string(e.Why)
	if e.chunk > 0 {
		s += fmt.Sprintf(" (part %d)", e.chunk)
	}
	if e.err != nil {
		s += ": " + e.err.Error()
	}
	return s
}

// Unwrap returns Err.
func (e *RejectedError) Unwrap() error { return e.err }

const maxSaid = 8 << 10

// Verify asks the reviewer about the whole surface, in parts if it is large. It
// returns nil if every part was answered by a bare OK, now or when the same was
// asked before; ctx's error if that ended; else a *RejectedError. cached says that
// nobody was asked. What was rejected is never remembered.
func (r *Review) Verify(ctx context.Context, s *Surface) (cached bool, err error) {
	if r.Reviewer == nil {
		return false, &RejectedError{Why: NoReviewer}
	}
	key := CacheKey(s.Fingerprint(), r.Model, r.Transport)
	if r.Cache != nil {
		if entry, err := r.Cache.GetVerdict(ctx, key); err == nil && string(entry) == cacheEntry(key) {
			return true, nil
		}
	}
	parts := chunks(s.items, orDefault(r.ChunkTokens, 24_000))
	total := 0
	for _, p := range parts {
		total += tokensOf(p) + tokensOf(rubric)
	}
	if total > orDefault(r.TotalTokens, 2_000_000) {
		return false, &RejectedError{Why: OverBudget}
	}
	for i, p := range parts {
		if r.Progress != nil {
			r.Progress(Step{i + 1, len(parts), tokensOf(p)})
		}
		if err := r.ask(ctx, i+1, len(parts), p); err != nil {
			return false, err
		}
	}
	if r.Cache != nil {
		// What cannot be remembered is asked again: no reason to reject.
		_ = r.Cache.PutVerdict(ctx, key, []byte(cacheEntry(key)))
	}
	return false, nil
}

// Opinion judges one version of an item, as a pin keeps it, by the same question; what it says is for the person
// who decides about the item.
func (r *Review) Opinion(ctx context.Context, key Key, version string) error {
	_, err := r.Verify(ctx, &Surface{items: []Item{newItem(key, []byte(version))}})
	return err
}

// ask puts one question.
func (r *Review) ask(ctx context.Context, n, of int, material string) error {
	q, err := r.question(n, of, material)
	if err != nil {
		return &RejectedError{Why: ReviewFailed, chunk: n, err: err}
	}
	timeout := r.Timeout
	if timeout <= 0 {
		timeout = 2 * time.Minute
	}
	one, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	a, err := r.Reviewer.Review(one, q)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case one.Err() != nil:
		return &RejectedError{Why: ReviewLate, chunk: n}
	case err != nil:
		return &RejectedError{Why: ReviewFailed, chunk: n, err: err}
	case !a.Whole:
		return &RejectedError{Why: CutOff, chunk: n, Said: said(a.Text)}
	case !isOK(a.Text):
		return &RejectedError{Why: Flagged, chunk: n, Said: said(a.Text)}
	}
	return nil
}

// isOK reports whether an answer is the two letters, in any case, and white space.
func isOK(answer string) bool {
	answer = strings.Trim(answer, " \t\r\n")
	return len(answer) == 2 && answer[0]|0x20 == 'o' && answer[1]|0x20 == 'k'
}

func said(text string) string { return strings.Clone(text[:min(len(text), maxSaid)]) }

// question frames the material as data. spec: surface/8.1
func (r *Review) question(n, of int, material string) (Question, error) {
	source := r.random
	if source == nil {
		source = rand.Reader
	}
	var nonce [16]byte
	if _, err := io.ReadFull(source, nonce[:]); err != nil {
		return Question{}, errors.New("no randomness for a delimiter")
	}
	mark := "surface-" + hex.EncodeToString(nonce[:])
	q := Question{
		Material: material,
		System:   fmt.Sprintf(rubric, mark),
		User: fmt.Sprintf("Part %d of %d.\n-----BEGIN %s-----\n%s\n-----END %s-----\n%s",
			n, of, mark, strings.TrimRight(material, "\n"), mark, closing),
	}
	q.Tokens = tokensOf(q.System) + tokensOf(q.User)
	return q, nil
}

// CacheKey is the key under which an OK is remembered: the same surface, asked the
// same of the same model, reached the same way. spec: surface/8.4
func CacheKey(fingerprint Digest, model, transport string) Digest {
	return digestOf("verdict", fingerprint[:], []byte(model), fmt.Append(nil, promptVersion), []byte(rubric+closing), []byte(transport))
}

// cacheEntry is the one entry that counts under a key; anything else is a miss.
func cacheEntry(key Digest) string { return "OK " + key.String() + "\n" }

// Shown is what the reviewer said, for a person: escaped and cut.
func (e *RejectedError) Shown() string { return finding.Quote(e.Said) }
