// SPDX-License-Identifier: Apache-2.0

// Package sigv4 signs HTTP requests to Amazon's services (Signature Version 4), with the signer of Amazon's own SDK.
package sigv4

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// A Secret reads a secret; it is read for each request and kept nowhere.
type Secret func() (string, error)

// A Signer signs requests.
type Signer struct {
	Region, Service string
	Access, Secret  Secret
	Session         Secret // the token of temporary keys; nil: the keys are not temporary
	MaxBody         int    // bytes of a body that Transport signs; 0: 32 MiB

	now func() time.Time // nil: time.Now
}

// At returns a Signer with that clock; nil: time.Now.
func (s Signer) At(now func() time.Time) *Signer {
	s.now = now
	return &s
}

// Errors of a signature. They hold nothing of a secret or a request.
var (
	ErrKeys = errors.New("sigv4: the keys cannot be read")
	ErrBody = errors.New("sigv4: the body is too long to be signed")
)

// own are headers that belong to a signature.
var own = []string{"Authorization", "X-Amz-Date", "X-Amz-Security-Token", "X-Amz-Content-Sha256"}

// Sign signs req, whose body is body. A signature that req has is taken away.
func (s *Signer) Sign(req *http.Request, body []byte) error {
	for _, name := range own {
		req.Header.Del(name)
	}
	var who aws.Credentials
	for _, m := range []struct {
		to   *string
		from Secret
		may  bool // be missing
	}{{&who.AccessKeyID, s.Access, false}, {&who.SecretAccessKey, s.Secret, false}, {&who.SessionToken, s.Session, true}} {
		if m.from == nil && m.may {
			continue
		}
		if m.from == nil {
			return ErrKeys
		}
		v, err := m.from()
		if err != nil || v == "" && !m.may {
			return ErrKeys
		}
		*m.to = v
	}
	at := s.now
	if at == nil {
		at = time.Now
	}
	sum := sha256.Sum256(body)
	digest := hex.EncodeToString(sum[:])
	signer := v4.NewSigner()
	if s.Service == "s3" { // alone wants the digest as a header, and escapes a path once
		req.Header.Set("X-Amz-Content-Sha256", digest)
		signer = v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	}
	return signer.SignHTTP(req.Context(), who, req, digest, s.Service, s.Region, at())
}

// Transport returns a RoundTripper that signs every request and carries it by next.
func (s *Signer) Transport(next http.RoundTripper) http.RoundTripper { return transport{s, next} }

type transport struct {
	*Signer
	next http.RoundTripper
}

func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	signed := req.Clone(req.Context())
	var body []byte
	if req.Body != nil && req.Body != http.NoBody {
		most := t.MaxBody
		if most <= 0 {
			most = 32 << 20
		}
		var err error
		body, err = io.ReadAll(io.LimitReader(req.Body, int64(most)+1))
		req.Body.Close()
		if err != nil {
			return nil, err
		}
		if len(body) > most {
			return nil, ErrBody
		}
		signed.Body, signed.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	if err := t.Sign(signed, body); err != nil {
		return nil, err
	}
	return t.next.RoundTrip(signed)
}

// Region returns the region that the host of an endpoint of a service names, such as that of
// https://bedrock-runtime.eu-west-1.amazonaws.com; "" if the host names none.
func Region(endpoint, service string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return ""
	}
	labels := strings.Split(strings.ToLower(u.Hostname()), ".")
	for i, label := range labels[:max(len(labels)-2, 0)] {
		if label == service || label == service+"-fips" {
			if after := strings.Join(labels[i+2:], "."); domains[after] {
				return labels[i+1]
			}
		}
	}
	return ""
}

// domains are those behind the region: of the regions of each partition, and of private endpoints.
var domains = map[string]bool{"amazonaws.com": true, "amazonaws.com.cn": true, "api.aws": true, "vpce.amazonaws.com": true, "vpce.amazonaws.com.cn": true}
