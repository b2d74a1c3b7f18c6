// SPDX-License-Identifier: Apache-2.0

// Package validator is what a validator does with its own documents: it keeps a key in a file, signs attestations, and finds out whether they would be accepted.
package validator

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/platform/privacy"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// maxKeyFile bounds the bytes of a key file.
const maxKeyFile = 4096

// A keyFile holds a key, as a Multikey of Controlled Identifiers 1.0.
type keyFile struct {
	ID         string `json:"id"`
	Type       string `json:"type"`
	Controller string `json:"controller"`
	Public     string `json:"publicKeyMultibase"`
	Secret     string `json:"secretKeyMultibase"`
}

// WriteKey writes a key with its secret part.
func WriteKey(w io.Writer, k attest.Key) error {
	f := keyFile{ID: k.Method(), Type: "Multikey", Controller: k.DID(), Public: k.Public(), Secret: k.Secret()}
	if err := terminal.WriteJSON(w, f); err != nil {
		return fmt.Errorf("attest: write key: %w", err)
	}
	return nil
}

// CreateKey writes a key to a new file, which only its owner can read.
func CreateKey(name string, k attest.Key) error {
	file, err := privacy.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return fmt.Errorf("attest: create %s: %w", finding.Quote(name), terminal.WithoutPath(err))
	}
	defer file.Close()
	if err := WriteKey(file, k); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("attest: write key: %w", err)
	}
	return nil
}

// ReadKey reads a file that CreateKey has written. The key is made of its secret part; its
// other members are for people.
func ReadKey(name string) (attest.Key, error) {
	b, err := terminal.ReadInput(name, strings.NewReader(""))
	if err != nil {
		return attest.Key{}, err
	}
	var f keyFile
	if err := strictjson.Unmarshal(b, &f, strictjson.Limits{Bytes: maxKeyFile}); err != nil {
		return attest.Key{}, fmt.Errorf("read key %s: %w", finding.Quote(name), err)
	}
	return attest.ParseKey(f.Secret)
}

// OwnKey resolves the method under which a signer says that its key is published, and every
// did:key.
type OwnKey struct {
	Key    attest.Key
	Method string
}

// ResolveKey implements attest.KeyResolver.
func (o OwnKey) ResolveKey(ctx context.Context, method string) (ed25519.PublicKey, error) {
	if method == o.Method {
		method = o.Key.Method()
	}
	return attest.DIDKey{}.ResolveKey(ctx, method)
}

// offlineKeys resolves did:key. It cannot know the keys of another method.
type offlineKeys struct{}

func (offlineKeys) ResolveKey(ctx context.Context, method string) (ed25519.PublicKey, error) {
	if !strings.HasPrefix(method, "did:key:") {
		return nil, errors.New("only did:key is resolved offline")
	}
	return attest.DIDKey{}.ResolveKey(ctx, method)
}
