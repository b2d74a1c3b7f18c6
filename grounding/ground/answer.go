// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"encoding/json"
	"fmt"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/grounding/consensus"
)

// An Answer is what a program that shows or checks a response envelope reads of it;
// docs/spec/grounding.md says what the members mean. Whatever stands in a Text or a
// Quote is a stranger's.
type Answer struct {
	Domain       string     `json:"consensus_domain"`
	Summary      summary    `json:"verdict_summary"`
	Attestations []entry    `json:"attestations"`
	Meta         answerMeta `json:"_meta"`
}

type answerMeta struct {
	Stripped    []json.RawMessage `json:"stripped_positions"`
	Replaced    []json.RawMessage `json:"confusables_replaced"`
	Claim       *claimMeta        `json:"claim"`
	Others      []claimMeta       `json:"other_claims"`
	Provenance  []provenance      `json:"provenance"`
	Withheld    []withheld        `json:"withheld"`
	Cut         cut               `json:"cut"`
	Explanation *struct {
		Outcome consensus.Basis `json:"outcome"`
		Tallies []struct {
			Verdict    attest.Verdict `json:"verdict"`
			Validators int            `json:"validator_count"`
		} `json:"tallies"`
		Votes   []AnswerVote `json:"votes"`
		Omitted int          `json:"votes_omitted"`
	} `json:"explanation"`
}

// An AnswerVote says what became of one attestation on the claim.
type AnswerVote struct {
	Hash      string           `json:"id"`
	Validator string           `json:"validator_did"`
	Verdict   attest.Verdict   `json:"verdict"`
	Reason    consensus.Reason `json:"reason"`
}

// ParseAnswer reads an envelope that an Adapter of this version has made. It checks
// nothing of what another one says: the error is that of malformed JSON only.
func ParseAnswer(envelope []byte) (*Answer, error) {
	a := new(Answer)
	if err := json.Unmarshal(envelope, a); err != nil {
		return nil, fmt.Errorf("ground: answer: %w", err)
	}
	return a, nil
}
