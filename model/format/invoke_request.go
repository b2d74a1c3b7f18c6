// SPDX-License-Identifier: Apache-2.0

package format

import (
	"bytes"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// bedrockVersion is the version of Anthropic's messages that Amazon Bedrock has.
const bedrockVersion = "bedrock-2023-05-31"

// Looks: but for its version, the body is one of messages.
func (bedrockMessages) Looks(root strictjson.Value) Likeness {
	if root.Get("anthropic_version").Text() == bedrockVersion {
		return Sure
	}
	return Unlike
}

// Asks refuses what is not Anthropic's: every family of models has a body of its own there.
func (bedrockMessages) Asks(root strictjson.Value) Asked {
	a := messages{}.Asks(root)
	a.Model, a.Stream, a.InPath = "", false, true
	if a.Wrong == "" && root.Get("anthropic_version").Text() != bedrockVersion {
		a.Wrong = "InvokeModel is inspected for Anthropic's messages alone (anthropic_version " + bedrockVersion + "); use Converse for other models"
	}
	return a
}

func (bedrockMessages) Sign(key string, set func(name, value string)) { converse{}.Sign(key, set) }

func (bedrockMessages) AppendRequest(dst []byte, r *Request) ([]byte, error) {
	plain := *r
	plain.Model, plain.Stream = "", false
	b, err := messages{}.AppendRequest(nil, &plain)
	if err != nil {
		return dst, err
	}
	dst = append(dst, `{"anthropic_version":"`+bedrockVersion+`"`...)
	return append(dst, bytes.TrimPrefix(b, []byte(`{"model":""`))...), nil
}
