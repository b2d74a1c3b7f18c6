// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

type attestCmd struct {
	Keygen attestKeygenCmd `cmd:"" help:"Make a signing key."`
	Sign   attestSignCmd   `cmd:"" help:"Sign an attestation."`
	Check  attestCheckCmd  `cmd:"" help:"Say whether an attestation is accepted, or why not."`
	Hash   attestHashCmd   `cmd:"" help:"Print the canonical hash of an attestation."`
}

// A keyFile holds a key, as a Multikey of Controlled Identifiers 1.0.
type keyFile struct {
	ID         string `json:"id"`
	Type       string `json:"type"`
	Controller string `json:"controller"`
	Public     string `json:"publicKeyMultibase"`
	Secret     string `json:"secretKeyMultibase"`
}

type attestKeygenCmd struct {
	Out string `placeholder:"FILE" help:"Write the key to a new file, which only its owner can read."`
}

func (attestKeygenCmd) Help() string {
	return `The key, with its secret part, is written as JSON: to standard output, or to
the file that --out names, which must not exist yet. The DID that attestations
are made under goes to standard error, or with --out to standard output. Exit
codes: 0 done, 1 the file cannot be written, 2 wrong usage.`
}

func (c *attestKeygenCmd) Run(e *env) error {
	k, err := attest.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	f := keyFile{ID: k.Method(), Type: "Multikey", Controller: k.DID(), Public: k.Public(), Secret: k.Secret()}
	key, told := e.Stdout, e.Stderr
	if c.Out != "" {
		file, err := os.OpenFile(c.Out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return fmt.Errorf("attest: create %s: %w", finding.Quote(c.Out), terminal.WithoutPath(err))
		}
		defer file.Close()
		key, told = file, e.Stdout
	}
	if err := terminal.WriteJSON(key, f); err != nil {
		return fmt.Errorf("attest: write key: %w", err)
	}
	if file, ok := key.(*os.File); ok && c.Out != "" {
		if err := file.Close(); err != nil {
			return fmt.Errorf("attest: write key: %w", err)
		}
	}
	_, err = fmt.Fprintln(told, k.DID())
	return err
}

// readKey reads a key file.
func readKey(name string) (attest.Key, error) {
	b, err := terminal.ReadInput(name, strings.NewReader(""))
	if err != nil {
		return attest.Key{}, err
	}
	var f keyFile
	if err := strictjson.Unmarshal(b, &f, strictjson.Limits{Bytes: 4096}); err != nil {
		return attest.Key{}, fmt.Errorf("read key %s: %w", finding.Quote(name), err)
	}
	return attest.ParseKey(f.Secret)
}

type attestSignCmd struct {
	Key     string    `required:"" placeholder:"FILE" help:"The key, as keygen wrote it."`
	Method  string    `placeholder:"DID-URL" help:"Where the key is published, if not as its did:key."`
	Created time.Time `placeholder:"TIME" help:"When it is signed (RFC 3339); now if absent."`
	Expires time.Time `placeholder:"TIME" help:"When the proof expires; never if absent."`
	File    string    `arg:"" optional:"" completion:"files" help:"The attestation; standard input if absent or -."`
}

func (attestSignCmd) Help() string {
	return `Prints the attestation with a proof (Data Integrity, eddsa-jcs-2022). The
validator_did and claim_hash are added if absent; everything else keeps its
octets. What "attest check" would refuse is not signed. Exit codes: 0 signed, 1
refused or the input cannot be read, 2 wrong usage.`
}

func (c *attestSignCmd) Run(e *env) error {
	key, err := readKey(c.Key)
	if err != nil {
		return fmt.Errorf("attest: %w", err)
	}
	doc, err := terminal.ReadInput(c.File, e.Stdin)
	if err != nil {
		return fmt.Errorf("attest: %w", err)
	}
	o := attest.SignOptions{Created: c.Created, Expires: c.Expires, Method: c.Method}
	if o.Created.IsZero() {
		o.Created = time.Now()
	}
	if o.Method == "" {
		o.Method = key.Method()
	}
	did, _, _ := strings.Cut(o.Method, "#")
	if doc, err = attest.Complete(doc, did); err != nil {
		return err
	}
	signed, err := attest.Sign(doc, key, o)
	if err != nil {
		return err
	}
	a, err := attest.Parse(signed, attest.Options{})
	if err != nil {
		return err
	}
	if err := a.Verify(context.Background(), o.Created, ownKey{key, o.Method}); err != nil {
		return err
	}
	_, err = e.Stdout.Write(append(signed, '\n'))
	return err
}

// ownKey resolves the method under which the signer says that its key stands.
type ownKey struct {
	key    attest.Key
	method string
}

func (o ownKey) ResolveKey(ctx context.Context, method string) (ed25519.PublicKey, error) {
	if method == o.method {
		method = o.key.Method()
	}
	return attest.DIDKey{}.ResolveKey(ctx, method)
}

type attestCheckCmd struct {
	At                       time.Time `placeholder:"TIME" help:"The time at which it must hold (RFC 3339); now if absent."`
	JSON                     bool      `name:"json" help:"Print the result as JSON."`
	DangerouslyIngestUntyped bool      `help:"Accept text that is not plain."`
	File                     string    `arg:"" optional:"" completion:"files" help:"The attestation; standard input if absent or -."`
}

func (attestCheckCmd) Help() string {
	return `Checks envelope, typing, hashes and proof, as ingestion does, but for the
registry of domains and for duplicates. Keys are resolved offline: of did:key. A
refusal names a code, a member and an octet. Exit codes: 0 accepted, 1 refused or
the input cannot be read, 2 wrong usage.`
}

// An attestCheckReport is what --json prints.
type attestCheckReport struct {
	Accepted  bool   `json:"accepted"`
	Code      string `json:"code,omitempty"`
	Pointer   string `json:"pointer,omitempty"`
	Offset    *int   `json:"offset,omitempty"`
	InText    bool   `json:"in_text,omitzero"` // the offset is that in the decoded string
	ID        string `json:"id,omitempty"`
	Version   string `json:"canonicalisation_version,omitempty"`
	Hash      string `json:"hash,omitempty"`
	ClaimHash string `json:"claim_hash,omitempty"`
	Validator string `json:"validator_did,omitempty"`
	Verdict   string `json:"verdict,omitempty"`
	Untyped   string `json:"untyped,omitempty"` // what typing would have refused it for
}

func (c *attestCheckCmd) Run(e *env) error {
	doc, err := terminal.ReadInput(c.File, e.Stdin)
	if err != nil {
		return fmt.Errorf("attest: %w", err)
	}
	rep, err := c.check(doc)
	if err != nil {
		return err
	}
	if c.JSON {
		err = terminal.WriteJSON(e.Stdout, rep)
	} else {
		err = rep.print(e.Stdout)
	}
	if err == nil && !rep.Accepted {
		return exit.With(exit.Failed, nil)
	}
	return err
}

func (c *attestCheckCmd) check(doc []byte) (*attestCheckReport, error) {
	at := c.At
	if at.IsZero() {
		at = time.Now()
	}
	a, err := attest.Parse(doc, attest.Options{DangerouslyIngestUntyped: c.DangerouslyIngestUntyped})
	if err == nil {
		err = a.Verify(context.Background(), at, offlineKeys{})
	}
	var r *attest.Refusal
	switch {
	case errors.As(err, &r):
		return &attestCheckReport{Code: string(r.Code), Pointer: r.Pointer, Offset: &r.Offset, InText: r.Text}, nil
	case err != nil:
		return nil, err
	}
	rep := &attestCheckReport{
		Accepted: true, ID: a.ID, Version: string(a.Version), Hash: a.Hash().String(), ClaimHash: a.ClaimHash.String(),
		Validator: a.Validator, Verdict: string(a.Verdict),
	}
	if a.Untyped != nil {
		rep.Untyped = string(a.Untyped.Code)
	}
	return rep, nil
}

func (r *attestCheckReport) print(w io.Writer) error {
	if !r.Accepted {
		at := "octet"
		if r.InText {
			at = "octet of the text"
		}
		_, err := fmt.Fprintf(w, "refused: %s at %s, %s %d\n", r.Code, finding.Quote(r.Pointer), at, *r.Offset)
		return err
	}
	if _, err := fmt.Fprintf(w, "accepted: %s\n%s by %s\n", r.Hash, r.Verdict, r.Validator); err != nil || r.Untyped == "" {
		return err
	}
	_, err := fmt.Fprintf(w, "not plain text: %s\n", r.Untyped)
	return err
}

// offlineKeys resolves did:key; of every other method it cannot know.
type offlineKeys struct{}

func (offlineKeys) ResolveKey(ctx context.Context, method string) (ed25519.PublicKey, error) {
	if !strings.HasPrefix(method, "did:key:") {
		return nil, errors.New("only did:key is resolved offline")
	}
	return attest.DIDKey{}.ResolveKey(ctx, method)
}

type attestHashCmd struct {
	Version string `placeholder:"V" help:"Canonicalisation 0.2 or 0.3; if absent, the one that the document names, or 0.2."`
	Dedup   bool   `help:"Print the two keys by which duplicates are found instead, of text and of its skeleton."`
	File    string `arg:"" optional:"" completion:"files" help:"The attestation; standard input if absent or -."`
}

func (attestHashCmd) Help() string {
	return `The hash is that of any JSON object, without its member "proof". --dedup needs
an attestation that is accepted but for its proof. Exit codes: 0 done, 1 refused
or the input cannot be read, 2 wrong usage.`
}

// Validate is called by kong; its error is one of usage.
func (c *attestHashCmd) Validate() error {
	switch {
	case c.Version != "" && c.Version != string(attest.V02) && c.Version != string(attest.V03):
		return errors.New("attest: --version is 0.2 or 0.3")
	case c.Version != "" && c.Dedup:
		return errors.New("attest: the keys of --dedup have no --version")
	}
	return nil
}

func (c *attestHashCmd) Run(e *env) error {
	doc, err := terminal.ReadInput(c.File, e.Stdin)
	if err != nil {
		return fmt.Errorf("attest: %w", err)
	}
	if c.Dedup {
		a, err := attest.Parse(doc, attest.Options{})
		if err != nil {
			return err
		}
		k := a.DedupKey()
		_, err = fmt.Fprintf(e.Stdout, "text %s\nskeleton %s\n", k.Text, k.Skeleton)
		return err
	}
	v := attest.Version(c.Version)
	if v == "" {
		v = attest.StatedVersion(doc)
	}
	h, err := attest.CanonicalHash(doc, v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(e.Stdout, h)
	return err
}
