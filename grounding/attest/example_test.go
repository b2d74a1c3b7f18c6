// SPDX-License-Identifier: Apache-2.0

package attest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
)

// A validator signs what it says of a claim. A reader checks the signature, and shows
// a model the projection only.
func Example() {
	key, err := attest.GenerateKey(bytes.NewReader(make([]byte, 32))) // yours is crypto/rand.Reader
	if err != nil {
		log.Fatal(err)
	}
	claim := attest.Claim{Text: "Water boils at 100 degrees Celsius at sea level.", Language: "en"}
	issued := time.Date(2026, 4, 25, 0, 0, 0, 0, time.UTC)
	s := attest.Statement{
		ID: "urn:uuid:f81d4fae-7dec-41d0-a765-00a0c91e6bf6", Version: attest.V03, Claim: claim,
		Validator: key.DID(), Verdict: attest.Supported, Domain: "scientific-default",
		Rationale: "Textbooks\u200b agree.", Issued: issued,
	}
	doc, err := attest.Sign(s.AppendJSON(nil), key, attest.SignOptions{Created: issued})
	if err != nil {
		log.Fatal(err)
	}

	a, err := attest.Parse(doc, attest.Options{})
	if err != nil {
		log.Fatal(err)
	}
	if err := a.Verify(context.Background(), issued, attest.DIDKey{}); err != nil {
		log.Fatal(err)
	}
	projector, err := attest.NewProjector(attest.Policy{})
	if err != nil {
		log.Fatal(err)
	}
	var p attest.Projection
	if err := projector.Project(a, &p); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: %+q\n", a.Verdict, p.Rationale.String())
	// Output: SUPPORTED: "Textbooks agree."
}

func ExampleParse_refused() {
	_, err := attest.Parse([]byte(`{"@context": "https://veritas-protocol.example/attestation/v0.3", "id": 7}`), attest.Options{})
	var refusal *attest.Refusal
	if errors.As(err, &refusal) {
		fmt.Println(refusal.Code, refusal.Pointer)
	}
	// Output: missing-member /@type
}
