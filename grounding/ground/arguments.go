// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"bytes"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// The problems with a tool's arguments, and with the size of its answer.
const (
	AnswerTooLong      Problem = "the answer is too long: ask for fewer attestations"
	ArgumentsMalformed Problem = "the arguments are not one JSON object in which every name stands once"
	ArgumentUnknown    Problem = "there is an argument that the tool does not have"
	ArgumentMissing    Problem = "a required argument is missing"
	ArgumentType       Problem = "an argument has another type than the tool's input schema says"
)

var argumentLimits = strictjson.Limits{Bytes: maxMessage, Depth: 32, Values: 1 << 15}

// arguments reads raw, an object whose members are all of names, and tells of each.
func arguments(raw []byte, member func(name string, v strictjson.Value) error) error {
	if len(raw) == 0 {
		return ArgumentMissing
	}
	var doc strictjson.Doc
	if err := doc.Reset(raw, argumentLimits); err != nil || doc.Root().Kind() != '{' {
		return ArgumentsMalformed
	}
	for name, v := range doc.Root().Members() {
		if err := member(name.Text(), v); err != nil {
			return err
		}
	}
	return nil
}

// groundArguments decodes the arguments of the tool ground. The error is a Problem.
func groundArguments(raw []byte) (Request, error) {
	var r Request
	query := false
	err := arguments(raw, func(name string, v strictjson.Value) error {
		ok := v.Kind() == '"'
		switch name {
		case "query":
			r.Query, query = v.Text(), true
		case "consensus_domain":
			r.Domain = v.Text()
		case "profile":
			if v.Kind() == '{' {
				r.Document, ok = bytes.Clone(v.Raw()), true
			} else {
				r.Profile = v.Text()
			}
		case "limit":
			var n int64
			n, ok = v.Int64()
			if ok && (n < 1 || n > MaxLimit) {
				return LimitOutOfRange
			}
			r.Limit = int(n)
		default:
			return ArgumentUnknown
		}
		if !ok {
			return ArgumentType
		}
		return nil
	})
	if err == nil && !query {
		err = ArgumentMissing
	}
	if err != nil {
		return Request{}, err
	}
	return r, nil
}

// attestationArguments decodes the arguments of the tool attestation. The error is a Problem.
func attestationArguments(raw []byte) (hash string, err error) {
	err = arguments(raw, func(name string, v strictjson.Value) error {
		switch {
		case name != "hash":
			return ArgumentUnknown
		case v.Kind() != '"':
			return ArgumentType
		}
		hash = v.Text()
		return nil
	})
	if err == nil && hash == "" {
		err = ArgumentMissing
	}
	if err != nil {
		return "", err
	}
	return hash, nil
}
