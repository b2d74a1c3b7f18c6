// SPDX-License-Identifier: Apache-2.0

package factcheck

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
)

// A draft is an attestation that is yet to be signed, or why there is none.
type draft struct {
	line      int
	pointer   string
	key       attest.Key
	statement attest.Statement
	err       error
}

// batch is how many drafts are signed together: enough to keep every processor at
// work, few enough to hold.
const batch = 512

// signAll checks and signs drafts and yields them in their order. Nothing runs
// while a consumer is busy, or once it has stopped.
func signAll(drafts iter.Seq[draft]) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		pending := make([]draft, 0, batch)
		flush := func() bool {
			bodies := signBatch(pending)
			for i := range pending {
				if !yield(bodies[i], pending[i].err) {
					return false
				}
			}
			pending = pending[:0]
			return true
		}
		for d := range drafts {
			if pending = append(pending, d); len(pending) == batch && !flush() {
				return
			}
		}
		flush()
	}
}

func signBatch(drafts []draft) [][]byte {
	out := make([][]byte, len(drafts))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(drafts)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(drafts); i = int(next.Add(1)) - 1 {
				if d := &drafts[i]; d.err == nil {
					out[i], d.err = d.sign()
				}
			}
		})
	}
	wg.Wait()
	return out
}

// sign signs what attest accepts, and nothing else: a text that it would refuse is
// not made to fit.
func (d *draft) sign() ([]byte, error) {
	d.statement.Validator = d.key.DID()
	src := d.statement.AppendJSON(nil)
	_, err := attest.Parse(src, attest.Options{})
	if err == nil {
		src, err = attest.Sign(src, d.key, attest.SignOptions{})
	}
	if err == nil {
		return src, nil
	}
	e := &EntryError{Line: d.line, Pointer: d.pointer, err: err}
	var r *attest.Refusal
	if errors.As(err, &r) {
		e.Code = r.Code
	}
	return nil, e
}

// keys makes and remembers the keys of validators.
type keys struct {
	seed [32]byte
	made map[string]attest.Key
}

// maxKeys bounds how many keys are remembered; more can be made at any time.
const maxKeys = 4096

func newKeys(seed [32]byte) *keys { return &keys{seed, map[string]attest.Key{}} }

// of returns the key of a validator: HMAC-SHA-256 of its name under the seed.
func (k *keys) of(name string) attest.Key {
	key, ok := k.made[name]
	if ok {
		return key
	}
	h := hmac.New(sha256.New, k.seed[:])
	h.Write([]byte("pellucid factcheck key 1\n" + name))
	key, err := attest.GenerateKey(bytes.NewReader(h.Sum(nil)))
	if err != nil {
		panic("factcheck: a seed of 32 bytes is too short") // it is not
	}
	if len(k.made) < maxKeys {
		k.made[name] = key
	}
	return key
}

// uuid is a UUID of version 8 (RFC 9562) made of fields: the same for the same.
func uuid(fields ...string) string {
	h := sha256.New()
	for _, f := range fields {
		fmt.Fprintf(h, "%d:%s", len(f), f)
	}
	b := h.Sum(nil)[:16]
	b[6] = b[6]&0x0f | 0x80
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
