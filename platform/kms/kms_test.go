// SPDX-License-Identifier: Apache-2.0

package kms

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/sigv4"
)

// fakeKMS is a fake of AWS KMS by its documented JSON API, not the service: it answers each request by
// the next of its answers, and checks what the documentation says of a request.
func fakeKMS(t *testing.T, answers ...func(w http.ResponseWriter)) (*Client, *int) {
	t.Helper()
	n := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method != http.MethodPost || r.URL.Path != "/" || r.Header.Get("X-Amz-Target") != "TrentService.Decrypt" || r.Header.Get("Content-Type") != "application/x-amz-json-1.1" ||
			string(body) != `{"CiphertextBlob":"d3JhcHBlZA=="}` || !strings.Contains(r.Header.Get("Authorization"), "/eu-central-1/kms/aws4_request") {
			t.Errorf("%s %s %v %s", r.Method, r.URL, r.Header, body)
		}
		n++ // before the answer: one request comes after the other
		answers[min(n, len(answers))-1](w)
	}))
	t.Cleanup(srv.Close)
	is := func(s string) sigv4.Secret { return func() (string, error) { return s, nil } }
	c, err := New(srv.URL, &sigv4.Signer{Region: "eu-central-1", Access: is("AKID"), Secret: is("secret")})
	if err != nil {
		t.Fatal(err)
	}
	c.pause = time.Millisecond
	return c, &n
}

func answer(status int, body string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

var wrapped = base64.StdEncoding.EncodeToString([]byte("wrapped"))

// TestDecrypt: every kind of answer, and how often the service is asked.
func TestDecrypt(t *testing.T) {
	good := answer(200, `{"KeyId":"arn:aws:kms:eu-central-1:1:key/a","Plaintext":"c2VjcmV0","EncryptionAlgorithm":"SYMMETRIC_DEFAULT"}`)
	throttled := answer(400, `{"__type":"ThrottlingException","message":"Rate exceeded"}`)
	for _, tt := range []struct {
		name    string
		answers []func(http.ResponseWriter)
		want    error
		asked   int
	}{
		{"good", []func(http.ResponseWriter){good}, nil, 1},
		{"throttled at first", []func(http.ResponseWriter){throttled, throttled, good}, nil, 3},
		{"throttled", []func(http.ResponseWriter){throttled}, ErrThrottled, tries},
		{"failing", []func(http.ResponseWriter){answer(500, `{"__type":"KMSInternalException"}`)}, ErrAway, tries},
		{"a proxy's page", []func(http.ResponseWriter){answer(502, "<html>")}, ErrAway, tries},
		{"denied", []func(http.ResponseWriter){answer(400, `{"__type":"AccessDeniedException","Message":"User arn:\u202e is not"}`)}, ErrDenied, 1},
		{"denied with a namespace", []func(http.ResponseWriter){answer(400, `{"__type":"com.amazon.coral.service#AccessDeniedException"}`)}, ErrDenied, 1},
		{"another key's", []func(http.ResponseWriter){answer(400, `{"__type":"InvalidCiphertextException"}`)}, ErrCiphertext, 1},
		{"disabled", []func(http.ResponseWriter){answer(400, `{"__type":"DisabledException"}`)}, ErrKey, 1},
		{"nonsense", []func(http.ResponseWriter){answer(200, `{"Plaintext":7}`)}, ErrAnswer, 1},
		{"empty", []func(http.ResponseWriter){answer(200, `{}`)}, ErrAnswer, 1},
		{"long", []func(http.ResponseWriter){answer(200, `{"Plaintext":"`+strings.Repeat("QUFB", 100_000)+`"}`)}, ErrAnswer, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, asked := fakeKMS(t, tt.answers...)
			secret, err := c.Decrypt(t.Context(), wrapped+"\n")
			if !errors.Is(err, tt.want) || (err == nil) != (string(secret) == "secret") || *asked != tt.asked {
				t.Errorf("%q, %v, asked %d times", secret, err, *asked)
			}
			if err != nil && (strings.Contains(err.Error(), "arn") || strings.Contains(err.Error(), "127.0.0.1")) {
				t.Errorf("the error quotes the service: %v", err)
			}
		})
	}
	c, asked := fakeKMS(t, good)
	for _, bad := range []string{"", "!", base64.StdEncoding.EncodeToString(make([]byte, maxCiphertext+1))} {
		if _, err := c.Decrypt(t.Context(), bad); !errors.Is(err, ErrCiphertext) || *asked != 0 {
			t.Errorf("%d bytes: %v", len(bad), err)
		}
	}
	c.url = "http://127.0.0.1:1/"
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	if _, err := c.Decrypt(ctx, wrapped); !errors.Is(err, ErrAway) {
		t.Errorf("away: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{`{"Plaintext":"c2VjcmV0"}`, `{"__type":"a#ThrottlingException"}`, `{"__type":"#"}`, `[]`, ``} {
		f.Add(200, []byte(s))
		f.Add(400, []byte(s))
	}
	f.Fuzz(func(t *testing.T, status int, b []byte) {
		secret, err := read(status, b)
		if (err == nil) != (len(secret) > 0) || err == nil && status != 200 {
			t.Errorf("%q, %v", secret, err)
		}
	})
}
