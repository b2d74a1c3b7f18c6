// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"time"
)

// A Secret signs messages: the shared secret of Standard Webhooks, for HMAC-SHA-256 (v1).
type Secret struct{ shared []byte }

// errSecret does not quote what it is about.
var errSecret = errors.New("want whsec_ and 24 to 64 bytes in base64")

// ParseSecret reads a secret in the spelling of Standard Webhooks. The error holds nothing of it.
func ParseSecret(s string) (Secret, error) {
	text, ok := strings.CutPrefix(s, "whsec_")
	if !ok || strings.ContainsAny(s, "\r\n") { // which the decoder would pass over
		return Secret{}, errSecret
	}
	b, err := base64.RawStdEncoding.Strict().DecodeString(strings.TrimRight(text, "=")) // the published examples have no padding
	if err != nil || len(b) < 24 || len(b) > 64 {
		return Secret{}, errSecret
	}
	return Secret{shared: b}, nil
}

// signature is the value of webhook-signature: one for each secret, so that a receiver
// accepts messages while a secret is replaced.
func signature(secrets []Secret, id string, at time.Time, body []byte) string {
	content := append([]byte(id+"."+strconv.FormatInt(at.Unix(), 10)+"."), body...)
	var all []string
	for _, s := range secrets {
		mac := hmac.New(sha256.New, s.shared)
		mac.Write(content)
		all = append(all, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return strings.Join(all, " ")
}
