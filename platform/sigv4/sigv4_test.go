// SPDX-License-Identifier: Apache-2.0

package sigv4

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

func is(s string) Secret { return func() (string, error) { return s, nil } }

func fixed() time.Time { return time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC) }

// TestVector: the request "get-vanilla" of Amazon's test suite of the signature.
func TestVector(t *testing.T) {
	s := Signer{Region: "us-east-1", Service: "service", Access: is("AKIDEXAMPLE"), Secret: is("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")}.At(fixed)
	req, err := http.NewRequest(http.MethodGet, "https://example.amazonaws.com/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=another")
	req.Header.Set("X-Amz-Security-Token", "another")
	if err := s.Sign(req, nil); err != nil {
		t.Fatal(err)
	}
	const want = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, " +
		"Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"
	if got := req.Header.Get("Authorization"); got != want {
		t.Errorf("%s", got)
	}
	if req.Header.Get("X-Amz-Security-Token") != "" {
		t.Error("the token of another signature is still there")
	}
}

type carrier func(*http.Request) (*http.Response, error)

func (c carrier) RoundTrip(r *http.Request) (*http.Response, error) { return c(r) }

// TestTransport: a request is signed anew, with its body, and the caller's is left alone.
func TestTransport(t *testing.T) {
	s := Signer{Region: "us-east-1", Service: "bedrock", Access: is("AKIDEXAMPLE"), Secret: is("s"), Session: is("token"), MaxBody: 8}.At(fixed)
	var sent *http.Request
	var body []byte
	rt := s.Transport(carrier(func(r *http.Request) (*http.Response, error) {
		sent = r
		body, _ = io.ReadAll(r.Body)
		return nil, nil
	}))
	for _, tt := range []struct {
		body string
		err  error
	}{{"{}", nil}, {"12345678", nil}, {"123456789", ErrBody}} {
		sent, body = nil, nil
		req, err := http.NewRequest(http.MethodPost, "https://bedrock-runtime.us-east-1.amazonaws.com/model/m%3A0/converse", strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rt.RoundTrip(req); !errors.Is(err, tt.err) {
			t.Fatalf("%q: %v", tt.body, err)
		}
		if tt.err != nil {
			continue
		}
		if string(body) != tt.body || sent.ContentLength != int64(len(tt.body)) || sent.Header.Get("X-Amz-Security-Token") != "token" ||
			!strings.HasPrefix(sent.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/bedrock/aws4_request") {
			t.Errorf("%q: %q, %v", tt.body, body, sent.Header)
		}
		if sent.URL.EscapedPath() != "/model/m%3A0/converse" || req.Header.Get("Authorization") != "" {
			t.Errorf("%s, %v", sent.URL, req.Header)
		}
	}
}

// TestKeys: keys that cannot be read are said, and not what stands in them.
func TestKeys(t *testing.T) {
	no := func() (string, error) { return "", errors.New("the secret is in here") }
	for _, s := range []Signer{
		{Secret: is("s")}, {Access: is("a")}, {Access: is(""), Secret: is("s")}, {Access: is("a"), Secret: no}, {Access: is("a"), Secret: is("s"), Session: no},
	} {
		req, err := http.NewRequest(http.MethodGet, "https://example.com/", bytes.NewReader(nil))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Sign(req, nil); !errors.Is(err, ErrKeys) || req.Header.Get("Authorization") != "" {
			t.Errorf("%v", err)
		}
	}
}

func TestRegion(t *testing.T) {
	for at, want := range map[string]string{
		"https://bedrock-runtime.eu-west-1.amazonaws.com":                 "eu-west-1",
		"https://BEDROCK-runtime.EU-west-1.amazonaws.com/":                "eu-west-1",
		"https://bedrock-runtime-fips.us-gov-west-1.amazonaws.com":        "us-gov-west-1",
		"https://bedrock-runtime.cn-north-1.amazonaws.com.cn":             "cn-north-1",
		"https://vpce-1-2.bedrock-runtime.us-east-1.vpce.amazonaws.com":   "us-east-1",
		"https://bedrock-runtime.us-east-1.api.aws":                       "us-east-1",
		"https://bedrock-runtime.us-east-1.amazonaws.com.example.com":     "",
		"https://bedrock-runtime.example.com":                             "",
		"https://bedrock-runtime.amazonaws.com":                           "",
		"http://127.0.0.1:1":                                              "",
		"https://bedrock-runtime":                                         "",
		"https://[::1":                                                    "",
		"https://other.us-east-1.amazonaws.com":                           "",
		"https://bedrock-runtime.bedrock-runtime.us-east-1.amazonaws.com": "us-east-1",
	} {
		if got := Region(at, "bedrock-runtime"); got != want {
			t.Errorf("%s: %q", at, got)
		}
	}
}
