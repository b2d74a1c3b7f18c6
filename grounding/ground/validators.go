// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"errors"
	"fmt"

	"github.com/pellucid-mcp/pellucid/grounding/consensus"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/href"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A Standing is what an operator knows of a validator.
type Standing struct {
	Reputation consensus.Score
	Trust      consensus.Score
}

// Validators holds the Standing of validators. A nil Validators gives everybody
// the greatest. It does not change once it is made.
type Validators struct {
	usual Standing
	of    map[string]Standing
}

// standing returns that of a validator.
func (v *Validators) standing(did string) Standing {
	if v == nil {
		return Standing{consensus.One, consensus.One}
	}
	if s, ok := v.of[did]; ok {
		return s
	}
	return v.usual
}

// maxValidators bounds the bytes of a validators document.
const maxValidators = 16 << 20

// ParseValidators reads a validators document, strictly:
//
//	{"version": "0.1", "default": {"reputation": 0.5, "trust": 1},
//	 "validators": {"did:web:university.example": {"reputation": 1}}}
//
// Scores are numbers from 0 to 1; one that is absent is 1.
func ParseValidators(src []byte) (*Validators, error) {
	type standing struct {
		Reputation *consensus.Score `json:"reputation"`
		Trust      *consensus.Score `json:"trust"`
	}
	var doc struct {
		Version    string              `json:"version"`
		Default    standing            `json:"default"`
		Validators map[string]standing `json:"validators"`
	}
	if err := strictjson.Unmarshal(src, &doc, strictjson.Limits{Bytes: maxValidators, Depth: 4, Values: 1 << 20}); err != nil {
		return nil, fmt.Errorf("ground: validators: %w", err)
	}
	if doc.Version != "0.1" {
		return nil, errors.New(`ground: validators: version is not "0.1"`)
	}
	full := func(s standing) Standing {
		out := Standing{consensus.One, consensus.One}
		if s.Reputation != nil {
			out.Reputation = *s.Reputation
		}
		if s.Trust != nil {
			out.Trust = *s.Trust
		}
		return out
	}
	v := &Validators{usual: full(doc.Default), of: make(map[string]Standing, len(doc.Validators))}
	for did, s := range doc.Validators {
		if _, err := href.ParseDID(did); err != nil {
			return nil, fmt.Errorf("ground: validators: %s is no DID", finding.Quote(did))
		}
		v.of[did] = full(s)
	}
	return v, nil
}
