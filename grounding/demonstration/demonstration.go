// SPDX-License-Identifier: Apache-2.0

// Package demonstration is a small set of attestations that show what grounding does.
package demonstration

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	_ "embed"
	"fmt"
	"time"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/text/href"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// The demonstration set is written for this package: its validators and hosts do
// not exist. Its keys are made of a seed that is no secret, so that they protect
// nothing: whoever wants to can sign in their names.
var (
	//go:embed demonstration.json
	demonstrationSource []byte
	demonstrationSeed   = sha256.Sum256([]byte("pellucid demonstration set: public, protects nothing"))
)

type demoClaim struct {
	Name     string       `json:"name"` // of its group
	Text     string       `json:"text"`
	Language string       `json:"language"`
	Topic    string       `json:"topic"`
	Said     []demoStated `json:"said"`
}

type demoStated struct {
	By             string         `json:"by"`
	Verdict        attest.Verdict `json:"verdict"`
	Domain         string         `json:"domain"`
	Rationale      string         `json:"rationale"`
	Qualifications string         `json:"qualifications"`
	Quote          string         `json:"quote"`
	Source         string         `json:"source"`
	Work           string         `json:"work"`
	Title          string         `json:"title"`
	Issued         string         `json:"issued"`
	Expires        string         `json:"expires"`
}

// Attestations returns a small set of signed attestations of our own, the same
// bytes each time.
func Attestations() [][]byte {
	out, err := demonstration(demonstrationSource)
	if err != nil {
		panic(err) // the source is embedded, and tested
	}
	return out
}

func demonstration(source []byte) ([][]byte, error) {
	var claims []demoClaim
	if err := strictjson.Unmarshal(source, &claims, strictjson.Limits{}); err != nil {
		return nil, fmt.Errorf("demonstration: %w", err)
	}
	var out [][]byte
	for _, c := range claims {
		for i, said := range c.Said {
			s, err := said.statement(&c, i)
			if err != nil {
				return nil, fmt.Errorf("demonstration: %w", err)
			}
			body, err := sign(said.By, s)
			if err != nil {
				return nil, fmt.Errorf("demonstration: %w", err)
			}
			out = append(out, body)
		}
	}
	return out, nil
}

// sign signs what a validator of the set has stated, with a key that is made of the seed and its name.
func sign(by string, s attest.Statement) ([]byte, error) {
	h := hmac.New(sha256.New, demonstrationSeed[:])
	h.Write([]byte("pellucid factcheck key 1\ndemonstration " + by))
	key, err := attest.GenerateKey(bytes.NewReader(h.Sum(nil)))
	if err != nil {
		return nil, err
	}
	s.Validator = key.DID()
	src := s.AppendJSON(nil)
	if _, err := attest.Parse(src, attest.Options{}); err != nil {
		return nil, err
	}
	return attest.Sign(src, key, attest.SignOptions{})
}

func (d *demoStated) statement(c *demoClaim, i int) (attest.Statement, error) {
	s := attest.Statement{
		ID:      fmt.Sprintf("urn:pellucid-demo:attestation:%s:%d", c.Name, i),
		Version: attest.V03,
		Claim: attest.Claim{
			Text: c.Text, Language: c.Language, Topic: c.Topic, Type: "FACT",
			GroupID: "urn:pellucid-demo:claim:" + c.Name,
		},
		Verdict: d.Verdict, Domain: d.Domain, Rationale: d.Rationale, Qualifications: d.Qualifications,
	}
	var err error
	if s.Issued, err = time.Parse(time.DateOnly, d.Issued); err != nil {
		return s, err
	}
	if d.Expires != "" {
		if s.Expires, err = time.Parse(time.DateOnly, d.Expires); err != nil {
			return s, err
		}
	}
	if d.Source != "" {
		uri, err := href.Parse(d.Source)
		if err != nil {
			return s, err
		}
		s.Evidence = []attest.Evidence{{Quote: d.Quote, URI: uri, Role: "primary"}}
		s.DependsOn = []string{uri.String()}
	}
	if d.Work != "" {
		uri, err := href.Parse(d.Work)
		if err != nil {
			return s, err
		}
		s.CitedWorks = []attest.CitedWork{{URI: uri, Title: d.Title}}
	}
	return s, nil
}
