// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
)

var bearerTests = []struct {
	header string
	token  string // "": refused
	code   string
}{
	{"Bearer mF_9.B5f-4.1JqM", "mF_9.B5f-4.1JqM", ""}, // RFC 6750 §2.1
	{"bearer a", "a", ""},
	{"BEARER  a==", "a==", ""},
	{"Bearer a~+/-._9Z", "a~+/-._9Z", ""},
	{"", "", ""},
	{"Bearer", "", codeToken},
	{"Bearer ", "", codeToken},
	{"Bearer =", "", codeToken},
	{"Bearer a=b", "", codeToken},
	{"Bearer a,b", "", codeToken},
	{"Bearer a b", "", codeToken},
	{"Bearer a ", "", codeToken},
	{"Bearer \ta", "", codeToken},
	{"Bearer\ta", "", ""},
	{"Bearer \u00e9", "", codeToken},
	{"Bearer a\x00", "", codeToken},
	{`Bearer token="a"`, "", codeToken},
	{"Bearer " + strings.Repeat("a", maxToken), strings.Repeat("a", maxToken), ""},
	{"Bearer " + strings.Repeat("a", maxToken+1), "", codeToken},
	{"Bearera a", "", ""},
	{" Bearer a", "", ""},
	{"Basic Bearer a", "", ""},
	{"Digest a, Bearer b", "", ""},
}

func TestParseBearer(t *testing.T) {
	for _, tt := range bearerTests {
		token, err := parseBearer(tt.header)
		if token != tt.token || (err == nil) != (tt.token != "") {
			t.Errorf("parseBearer(%+.40q) = %.40q, %v", tt.header, token, err)
		}
		if e, ok := errors.AsType[*refusal](err); err != nil && (!ok || e.code != tt.code) {
			t.Errorf("parseBearer(%+.40q): %v, want code %q", tt.header, err, tt.code)
		}
	}
}

func FuzzBearer(f *testing.F) {
	for _, tt := range bearerTests {
		f.Add(tt.header, "a=b")
	}
	f.Add("Bearer a", "access_token=b")
	f.Add("Bearer a", "%61ccess_token")
	f.Fuzz(func(t *testing.T, header, query string) {
		r := httptest.NewRequest("GET", "/", nil)
		r.URL.RawQuery = query
		r.Header["Authorization"] = []string{header}
		token, err := bearer(r)
		if err != nil {
			if token != "" || !errors.Is(err, ErrUnauthenticated) {
				t.Errorf("bearer = %q, %v", token, err)
			}
			return
		}
		if !isB64Token(token) || len(token) > maxToken || !strings.HasSuffix(header, " "+token) ||
			!strings.EqualFold(strings.TrimRight(strings.TrimSuffix(header, token), " "), "bearer") {
			t.Errorf("bearer(%+q) = %+q", header, token)
		}
		if r.URL.Query().Has("access_token") {
			t.Error("a token in the query was let through")
		}
	})
}
