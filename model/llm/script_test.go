// SPDX-License-Identifier: Apache-2.0

package llm

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// FuzzScript reads bytes as a script: one that was read answers every request.
func FuzzScript(f *testing.F) {
	f.Add([]byte(`{"version":"ccr-script/1","rules":[{"has":["a"],"lacks":["b"],"answer":{"x":1}},{"answer":null}]}`))
	f.Add([]byte(`{"version":"ccr-script/1"}`))
	f.Fuzz(func(t *testing.T, src []byte) {
		s, err := ParseScript(src)
		if err != nil {
			return
		}
		req, err := http.NewRequest(http.MethodPost, "http://127.0.0.1/v1", strings.NewReader("a request"))
		if err != nil {
			t.Fatal(err)
		}
		res, err := s.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusOK && res.StatusCode != http.StatusUnprocessableEntity {
			t.Fatal(res.StatusCode, err)
		}
	})
}

// TestScript: the first rule that holds answers, and a request that no rule is for is refused.
func TestScript(t *testing.T) {
	s, err := ParseScript([]byte(`{"version":"ccr-script/1","rules":[{"has":["a","b"],"lacks":["c"],"answer":1},{"has":["a"],"answer":2}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]string{"a b": "200 1", "a b c": "200 2", "a": "200 2", "c": `422 {"error":{"message":"no rule"}}`} {
		req, err := http.NewRequest(http.MethodPost, "http://127.0.0.1/v1", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		res, err := s.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(res.Body)
		if got := res.Status + " " + string(got); err != nil || http.StatusText(res.StatusCode) == "" || !strings.HasPrefix(want, "200") && res.StatusCode != 422 || !strings.HasSuffix(got, want[4:]) {
			t.Errorf("%s: %s, %v", body, got, err)
		}
	}
	for name, src := range map[string]string{"not JSON": "{", "other version": `{"version":"ccr-script/2"}`, "unknown member": `{"version":"ccr-script/1","x":1}`} {
		if _, err := ParseScript([]byte(src)); err == nil || !strings.HasPrefix(err.Error(), "script: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
