// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"time"
)

// A Secret signs messages. Standard Webhooks has two kinds: whsec_, a shared secret for
// HMAC-SHA-256 (v1), and whsk_, a private key of Ed25519 (v1a).
type Secret struct {
	shared  []byte
	private ed25519.PrivateKey
}

// errSecret does not quote what it is about.
var errSecret = errors.New("want whsec_ and 24 to 64 bytes in base64, or whsk_ and a private key of Ed25519 in base64")

// ParseSecret reads a secret in the spelling of Standard Webhooks. The error holds nothing of it.
func ParseSecret(s string) (Secret, error) {
	if strings.ContainsAny(s, "\r\n") { // which the decoder would pass over
		return Secret{}, errSecret
	}
	decode := base64.RawStdEncoding.Strict().DecodeString // the published examples have no padding
	if text, ok := strings.CutPrefix(s, "whsec_"); ok {
		b, err := decode(strings.TrimRight(text, "="))
		if err != nil || len(b) < 24 || len(b) > 64 {
			return Secret{}, errSecret
		}
		return Secret{shared: b}, nil
	}
	text, ok := strings.CutPrefix(s, "whsk_")
	b, err := decode(strings.TrimRight(text, "="))
	switch {
	case !ok || err != nil:
		return Secret{}, errSecret
	case len(b) == ed25519.SeedSize:
		return Secret{private: ed25519.NewKeyFromSeed(b)}, nil
	case len(b) == ed25519.PrivateKeySize:
		// A public half that belongs to another key would give it away in signatures.
		key := ed25519.NewKeyFromSeed(b[:ed25519.SeedSize])
		if !key.Equal(ed25519.PrivateKey(b)) {
			return Secret{}, errSecret
		}
		return Secret{private: key}, nil
	}
	return Secret{}, errSecret
}

// signature is the value of webhook-signature: one for each secret, so that a receiver
// accepts messages while a secret is replaced.
func signature(secrets []Secret, id string, at time.Time, body []byte) string {
	content := append([]byte(id+"."+strconv.FormatInt(at.Unix(), 10)+"."), body...)
	var all []string
	for _, s := range secrets {
		if s.private != nil {
			all = append(all, "v1a,"+base64.StdEncoding.EncodeToString(ed25519.Sign(s.private, content)))
			continue
		}
		mac := hmac.New(sha256.New, s.shared)
		mac.Write(content)
		all = append(all, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return strings.Join(all, " ")
}
