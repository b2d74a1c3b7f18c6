// SPDX-License-Identifier: Apache-2.0

// Package judge is a classifier that asks a language model: a fixed rubric, framed material, and an answer of one line out of a few.
//
// The material is a stranger's, and the model may be talked over by it: whatever is
// not one of the answers of the grammar is no judgement, and how a judgement that
// does not come counts is the member's fail mode.
package judge

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/boundary/classify"
)

// A Model is asked one question and has no tools. It may be asked at the same time.
type Model interface {
	Ask(ctx context.Context, q Question) (Answer, error)
}

// A Question is all that a Model gets.
type Question struct{ System, User string }

// An Answer is what it says. Whole means that it ended by itself: what was cut,
// refused or filtered did not.
type Answer struct {
	Text  string
	Whole bool
}

// Options of a Judge. Model and Name have to be set.
type Options struct {
	Model Model
	Name  string // of the model and whoever serves it; of any form, since it is hashed
	Chars int    // code points of one question's material; 0 = 12,000

	rand io.Reader // of delimiters; nil = crypto/rand
}

// A Judge is a classify.Classifier.
type Judge struct {
	o       Options
	version string
}

var _ classify.Classifier = (*Judge)(nil)

// New checks the options.
func New(o Options) (*Judge, error) {
	switch {
	case o.Model == nil || o.Name == "":
		return nil, errors.New("judge: no model, or no name of it")
	case o.Chars < 0:
		return nil, errors.New("judge: negative bound")
	case o.Chars == 0:
		o.Chars = 12_000
	}
	if o.rand == nil {
		o.rand = rand.Reader
	}
	// What is asked is part of it: another rubric is another judge.
	sum := sha256.Sum256([]byte(rubric + "\x00" + closing + "\x00" + o.Name))
	return &Judge{o, "judge-" + strconv.Itoa(rubricVersion) + "-" + hex.EncodeToString(sum[:8])}, nil
}

// Limits implements classify.Classifier.
func (j *Judge) Limits() classify.Limits { return classify.Limits{Texts: 1, Chars: j.o.Chars} }

// Version implements classify.Classifier.
func (j *Judge) Version() string { return j.version }

var (
	errTexts = errors.New("judge: one text at a time")
	errRand  = errors.New("judge: no randomness for a delimiter")
)

// Classify implements classify.Classifier.
func (j *Judge) Classify(ctx context.Context, texts []string) ([]classify.Score, error) {
	if len(texts) != 1 {
		return nil, errTexts
	}
	q, err := j.question(texts[0])
	if err != nil {
		return nil, err
	}
	a, err := j.o.Model.Ask(ctx, q)
	switch {
	case err != nil:
		return nil, fmt.Errorf("judge: %w", err)
	case !a.Whole:
		return nil, fmt.Errorf("judge: the answer was cut, refused or filtered: %w", classify.ErrRefused)
	}
	s, err := parse(a.Text)
	return []classify.Score{s}, err
}

// question frames the text by a delimiter that its author cannot know.
func (j *Judge) question(text string) (Question, error) {
	for range 3 {
		var b [16]byte
		if _, err := io.ReadFull(j.o.rand, b[:]); err != nil {
			return Question{}, errRand
		}
		d := "MATERIAL-" + hex.EncodeToString(b[:])
		if strings.Contains(text, d) {
			continue
		}
		return Question{
			System: fmt.Sprintf(rubric, d),
			User:   "<" + d + ">\n" + strings.ToValidUTF8(text, "\ufffd") + "\n</" + d + ">\n\n" + closing,
		}, nil
	}
	return Question{}, errRand
}

// parse reads an answer of the grammar
//
//	answer = "CLEAN" / "INJECTION " code
//	code   = "override" / "impersonation" / "exfiltration" / "action" / "concealment" / "evaluation"
//
// with white space around it. The case of letters counts. All else is
// classify.ErrMalformed.
func parse(answer string) (classify.Score, error) {
	answer = strings.TrimSpace(answer)
	if answer == "CLEAN" {
		return classify.Score{}, nil
	}
	code, is := strings.CutPrefix(answer, "INJECTION ")
	for _, known := range codes {
		if is && code == string(known) {
			return classify.Score{P: 1, Flagged: true, Code: known}, nil
		}
	}
	return classify.Score{}, classify.ErrMalformed
}
