// SPDX-License-Identifier: Apache-2.0

package validator

import (
	"context"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
)

// SignOptions are those for a key that is published as method, "" for its did:key. A zero
// time of creation is now.
func SignOptions(key attest.Key, method string, created time.Time) attest.SignOptions {
	o := attest.SignOptions{Created: created, Method: method}
	if o.Created.IsZero() {
		o.Created = time.Now()
	}
	if o.Method == "" {
		o.Method = key.Method()
	}
	return o
}

// Sign completes an attestation and signs it, as SignOptions says. What Check would refuse
// is not signed.
func Sign(doc []byte, key attest.Key, o attest.SignOptions) ([]byte, error) {
	did, _, _ := strings.Cut(o.Method, "#")
	doc, err := attest.Complete(doc, did)
	if err != nil {
		return nil, err
	}
	signed, err := attest.Sign(doc, key, o)
	if err != nil {
		return nil, err
	}
	a, err := attest.Parse(signed, attest.Options{})
	if err != nil {
		return nil, err
	}
	if err := a.Verify(context.Background(), o.Created, OwnKey{key, o.Method}); err != nil {
		return nil, err
	}
	return signed, nil
}
