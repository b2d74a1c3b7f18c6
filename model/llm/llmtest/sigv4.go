// SPDX-License-Identifier: Apache-2.0

package llmtest

import (
	"net/http"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/sigv4"
)

// AccessKey is the access key id of which a fake with a key takes signatures; the key is
// the secret access key. The region is Region.
const (
	AccessKey = "AKIDFAKE"
	Region    = "eu-west-1"
)

// signedBy reports whether r is signed with that secret access key, by Signature Version 4,
// within five minutes of now.
func signedBy(secret string, r *http.Request, body []byte) bool {
	given := r.Header.Get("Authorization")
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil || time.Since(at).Abs() > 5*time.Minute {
		return false
	}
	_, names, _ := strings.Cut(given, "SignedHeaders=")
	names, _, _ = strings.Cut(names, ",")
	again := r.Clone(r.Context())
	again.URL.Scheme, again.URL.Host, again.Header = "http", r.Host, http.Header{}
	again.ContentLength = 0 // Amazon's signers differ in whether they sign it
	for name := range strings.SplitSeq(names, ";") {
		if name == "content-length" {
			again.ContentLength = r.ContentLength
		}
		if values := r.Header.Values(name); len(values) > 0 && name != "content-length" {
			again.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	is := func(s string) sigv4.Secret { return func() (string, error) { return s, nil } }
	signer := sigv4.Signer{Region: Region, Service: "bedrock", Access: is(AccessKey), Secret: is(secret)}
	if token := r.Header.Get("X-Amz-Security-Token"); token != "" {
		signer.Session = is(token)
	}
	if signer.At(func() time.Time { return at }).Sign(again, body) != nil {
		return false
	}
	return again.Header.Get("Authorization") == given
}
