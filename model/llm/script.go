// SPDX-License-Identifier: Apache-2.0

package llm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A script is a model that answers by what the request holds.
type script struct {
	Version string `json:"version"`
	Rules   []struct {
		Has    []string        `json:"has,omitempty"`   // all of these stand in the request's bytes
		Lacks  []string        `json:"lacks,omitempty"` // and none of these
		Answer json.RawMessage `json:"answer"`          // body of the provider's answer
	} `json:"rules"`
}

// scriptVersion is that of docs/spec/counterfactual.md, "Scripts".
const scriptVersion = "ccr-script/1"

// ParseScript reads a script: a transport that calls no network. Answers come from the first
// rule that holds.
func ParseScript(b []byte) (http.RoundTripper, error) {
	var s script
	if err := strictjson.Unmarshal(b, &s, strictjson.Limits{}); err != nil {
		return nil, fmt.Errorf("script: %w", err)
	}
	if s.Version != scriptVersion {
		return nil, errors.New("script: want version " + scriptVersion)
	}
	return &s, nil
}

// RoundTrip answers by the first rule that holds; by status 422 if none does.
func (s *script) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	req.Body.Close()
	if err != nil {
		return nil, err
	}
	text := string(body)
	status, answer := http.StatusUnprocessableEntity, []byte(`{"error":{"message":"no rule"}}`)
	for _, r := range s.Rules {
		holds := true
		for _, h := range r.Has {
			holds = holds && strings.Contains(text, h)
		}
		for _, l := range r.Lacks {
			holds = holds && !strings.Contains(text, l)
		}
		if holds {
			status, answer = http.StatusOK, r.Answer
			break
		}
	}
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: int64(len(answer)),
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(string(answer))), Request: req,
	}, nil
}
