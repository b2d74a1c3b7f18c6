// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"errors"
	"io"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/egress"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/outbound"
	"github.com/pellucid-mcp/pellucid/record/witness"
)

// Evidence says how decisions are recorded in the ledger.
type Evidence struct {
	Mode   Recording
	Origin string // the log's name, if it is yet to begin; "": one is made up
	Key    Value  // the log's private key, PRIVATE+KEY+…; "": one of the state directory

	KMS       *KMS       // unwraps the private key; nil: Key
	Standby   Standby    // what happens while no synchronous standby of the database is left
	Witnesses *Witnesses // cosign checkpoints; nil: none do
	Mirror    *Mirror    // where the log is copied to; nil: nowhere
	Exports   []Export   // what is told of the records

	signer *ledger.Signer // of Key
}

// A Standby says what happens while a Postgres database has no synchronous standby.
type Standby uint8

// The settings.
const (
	StandbyWaits   Standby = iota // a record waits for one, and a call whose record must be durable fails
	StandbyMissing                // records are durable in the primary alone, and that is told
)

// AWSKeys are the keys with which requests to Amazon's services are signed.
type AWSKeys struct {
	Region                             string
	AccessKey, SecretKey, SessionToken Value // the last "": the keys are not temporary

	resolve func(ref string) (string, error)
}

// Read returns a key. That of a file is read again: temporary keys change there.
func (a *AWSKeys) Read(v Value) (string, error) {
	if a.resolve != nil && strings.HasPrefix(v.ref, "file:") {
		return a.resolve(v.ref)
	}
	return v.text, nil
}

func (a *AWSKeys) members() []member {
	return []member{
		{"region", restart, checked(&a.Region, "", "a label", isName), "region of the service, such as `eu-central-1`"},
		{"access_key", restart, reference(&a.AccessKey), "access key id"},
		{"secret_key", restart, reference(&a.SecretKey), "secret access key"},
		{"session_token", restart, reference(&a.SessionToken), "token of temporary keys"},
	}
}

// set reports whether all keys are there.
func (a *AWSKeys) set() bool {
	return a.Region != "" && a.AccessKey.text != "" && a.SecretKey.text != ""
}

// A KMS has the key that encrypts the private key of the log.
type KMS struct {
	AWSKeys
	Key Value  // the encrypted private key in base64, as `aws kms encrypt` prints it
	URL string // of the service; "": that of the region
}

func (k *KMS) members() []member {
	return append([]member{
		{"key", restart | needed, reference(&k.Key), "the encrypted private key, in base64"},
		{"url", restart, parsed(&k.URL, "an https URL, or an http URL of this machine", (*compiler).serviceURL), "URL of the service; default: that of the region"},
	}, k.AWSKeys.members()...)
}

// Witnesses cosign the checkpoints of the log.
type Witnesses struct {
	Policy string // policy file (C2SP tlog-policy), absolute; "": List and Quorum
	List   []Witness
	Quorum int // of List; 0: all
	Every  time.Duration

	policy *witness.Policy
}

// A Witness is one of the list.
type Witness struct{ Key, URL string }

// Parsed is the policy.
func (w *Witnesses) Parsed() *witness.Policy { return w.policy }

func (w *Witnesses) members() []member {
	return []member{
		{"policy", restart, parsed(&w.Policy, "PATH or `file:PATH`", (*compiler).file), "a policy file (C2SP tlog-policy), in place of list and quorum"},
		{"list", restart, objects(&w.List, 32, (*Witness).members, nil), "the witnesses"},
		{"quorum", restart, integer(&w.Quorum, 0, 0, 32), "how many of the list are enough; default: all"},
		{"every", restart, duration(&w.Every, 5*time.Second, time.Second, time.Hour), "the least time between two checkpoints that are sent"},
	}
}

func (w *Witness) members() []member {
	return []member{
		{"key", restart | needed, checked(&w.Key, "", "a witness's verifier key, NAME+HASH+…", func(s string) bool { _, err := ledger.ParseWitness(s); return err == nil }), "verifier key of the witness"},
		{"url", restart | needed, parsed(&w.URL, "an https URL, or an http URL of this machine", (*compiler).serviceURL), "submission prefix of the witness"},
	}
}

// witnesses makes the policy.
func (c *compiler) witnesses(p place, w *Witnesses, sound bool) bool {
	if !sound {
		return false
	}
	var err error
	if w.Policy != "" {
		if len(w.List) > 0 || w.Quorum > 0 {
			c.report(p, "has policy and list: the policy file says it all")
			return false
		}
		var text []byte
		if text, err = c.opt.ReadFile(w.Policy); err != nil {
			c.report(p.at("policy"), "cannot be read")
			return false
		}
		w.policy, err = witness.ParsePolicy(text)
	} else {
		var list []witness.Witness
		for _, x := range w.List {
			key, _ := ledger.ParseWitness(x.Key) // was checked
			list = append(list, witness.Witness{Key: key, URL: x.URL})
		}
		w.policy, err = witness.NewPolicy(list, w.Quorum)
	}
	if err == nil {
		_, err = witness.NewSender(witness.Options{Policy: w.policy}) // names what it lacks
	}
	if err != nil {
		c.report(p, "%s", err.Error())
		return false
	}
	return true
}

// A Mirror is where the log is copied to, so that other servers carry the reads.
type Mirror struct {
	AWSKeys
	Path  string // directory, absolute; "": URL
	URL   string // of a bucket, and a prefix in it
	Every time.Duration
}

func (m *Mirror) members() []member {
	return append([]member{
		{"path", restart, parsed(&m.Path, "the path of a directory", (*compiler).file), "directory that is the mirror"},
		{"url", restart, parsed(&m.URL, "an https URL, or an http URL of this machine", (*compiler).serviceURL), "endpoint, bucket and prefix of a store that speaks S3: `https://s3.eu-central-1.amazonaws.com/BUCKET/PREFIX`"},
		{"every", restart, duration(&m.Every, 10*time.Second, time.Second, 24*time.Hour), "the time between two copies"},
	}, m.AWSKeys.members()...)
}

func (c *compiler) mirror(p place, m *Mirror, sound bool) bool {
	switch {
	case (m.Path == "") == (m.URL == ""):
		c.report(p, "want path or url")
	case m.URL != "" && !m.set():
		c.report(p, "a bucket needs region, access_key and secret_key")
	default:
		m.resolve = c.opt.resolve
		return sound
	}
	return false
}

// An Export sends the records of the log to a system of others.
type Export struct {
	Name          string
	Format        outbound.Format
	Path          string // file, absolute
	Stdout        bool
	URL           string
	Authorization Value // of the header; "": none
	FromBegin     bool
}

const maxExports = 8

func (e *Export) members() []member {
	return []member{
		{"name", restart | needed, checked(&e.Name, "", "a name of 1 to 64 of A-Z a-z 0-9 . _ -, the first a letter or digit", isName), "names the export: its position in the log is stored under it"},
		{"format", restart, word(&e.Format, outbound.FormatOCSF, []string{"ocsf", "otlp"}, []outbound.Format{outbound.FormatOCSF, outbound.FormatOTLP}), "`ocsf`: findings as JSON lines, of the class Detection Finding of OCSF " + outbound.OCSFVersion + "; `otlp`: every record as a log of OpenTelemetry"},
		{"path", restart, parsed(&e.Path, "PATH or `file:PATH`", (*compiler).file), "file to append to, of `ocsf`"},
		{"stdout", restart, boolean(&e.Stdout, false), "write to standard output, of `ocsf`"},
		{"url", restart, parsed(&e.URL, "an https URL, or an http URL of this machine", (*compiler).serviceURL), "URL to post to; of `otlp` without a path that of logs, `/v1/logs`"},
		{"authorization", restart, reference(&e.Authorization), "value of the header Authorization, such as `Bearer …`"},
		{"from", restart, word(&e.FromBegin, false, []string{"now", "begin"}, []bool{false, true}), "where a new export begins: with the next record, or with the first of the log"},
	}
}

// export checks what stands together.
func (c *compiler) export(p place, e *Export) {
	to := 0
	for _, is := range []bool{e.Path != "", e.Stdout, e.URL != ""} {
		if is {
			to++
		}
	}
	switch {
	case to != 1:
		c.report(p, "want one of path, stdout and url")
	case e.Format == outbound.FormatOTLP && e.URL == "":
		c.report(p, "otlp needs url")
	case e.Authorization.text != "" && e.URL == "":
		c.report(p, "authorization is for url")
	}
	for i := range c.out.Evidence.Exports {
		if o := &c.out.Evidence.Exports[i]; o != e && o.Name == e.Name {
			c.report(p.at("name"), "another export has this name")
		}
	}
}

// Sink is where the export goes.
func (e *Export) Sink(stdout io.Writer) (outbound.Sink, error) {
	switch {
	case e.Path != "":
		return outbound.File(e.Path), nil
	case e.Stdout:
		return &outbound.Stream{W: stdout}, nil
	}
	return outbound.NewHTTP(e.URL, e.Format, e.Authorization.text)
}

func (c *compiler) kms(p place, k *KMS, sound bool) bool {
	if !k.set() {
		c.report(p, "needs region, access_key and secret_key")
		return false
	}
	k.resolve = c.opt.resolve
	return sound
}

// serviceURL reads the URL of a service: https, or http on this machine.
func (c *compiler) serviceURL(p place) string {
	s := c.text(p, 2048)
	if s == "" {
		return ""
	}
	base, _, err := egress.Base(s, false)
	if err != nil {
		c.report(p, "%s", err.Error())
		return ""
	}
	return base
}

// Signer is the key that was given, nil if none was.
func (e *Evidence) Signer() *ledger.Signer { return e.signer }

// Unwrapped takes the private key that a KMS has unwrapped. Its error quotes nothing of it.
func (e *Evidence) Unwrapped(key string) error {
	s, err := ledger.ParseSigner(key)
	if err == nil && e.Origin != "" && s.Name() != e.Origin {
		err = errors.New("it is a key of another log than origin names")
	}
	if err == nil {
		e.signer = s
	}
	return err
}

// A Recording says what becomes of a result that there can be no record of.
type Recording uint8

// The modes.
const (
	BestEffort Recording = iota // it is delivered, and the loss is counted and recorded
	Required                    // it is withheld, if its tool is privileged
	NoEvidence                  // there is no ledger: decisions are lines of a file
)

var (
	// recordings are the ways to record decisions.
	recordings = choices[Recording]{[]string{"best-effort", "required", "off"}, []Recording{BestEffort, Required, NoEvidence}}
)

func (m Recording) String() string { return recordings.words[m] }

func (e *Evidence) members() []member {
	return []member{
		{"mode", live, word(&e.Mode, BestEffort, recordings.words, recordings.values), "how decisions are recorded: `best-effort` counts what cannot be written, `required` withholds results then, `off` appends lines to decisions.jsonl ([Evidence](#evidence))"},
		{"origin", live, checked(&e.Origin, "", "a label without +, such as example.com/log", ledger.ValidOrigin),
			"the log's name, for ever; default: one is made up at the first start"},
		{"key", live, reference(&e.Key), "the log's private key, `PRIVATE+KEY+…`; default: one of the state directory"},
		{"kms", restart, optional(&e.KMS, (*KMS).members, (*compiler).kms), "the private key is encrypted with AWS KMS, in place of key"},
		{"standby", restart, word(&e.Standby, StandbyWaits, []string{"wait", "go-on"}, []Standby{StandbyWaits, StandbyMissing}), "with mode `required` on Postgres, while no synchronous standby is left: `wait` fails the calls whose records cannot be durable, `go-on` records in the primary alone and says so"},
		{"witnesses", restart, optional(&e.Witnesses, (*Witnesses).members, (*compiler).witnesses), "witnesses that cosign the checkpoints of the log"},
		{"mirror", restart, optional(&e.Mirror, (*Mirror).members, (*compiler).mirror), "a copy of the log as static files"},
		{"export", restart, objects(&e.Exports, maxExports, (*Export).members, (*compiler).export), "systems of others that are told of the records ([Exports](#exports))"},
	}
}

// evidence reads the key, once the whole section has been read.
func (c *compiler) evidence(p place) {
	e := &c.out.Evidence
	if e.Key.text == "" {
		return
	}
	if e.KMS != nil {
		c.report(p.at("kms"), "stands beside key: one of them has the private key")
	}
	s, err := ledger.ParseSigner(strings.TrimSpace(e.Key.text))
	switch key := p.at("key"); {
	case err != nil:
		c.report(key, "does not hold a log's private key, PRIVATE+KEY+NAME+HASH+…")
	case e.Origin != "" && s.Name() != e.Origin:
		c.report(key, "is a key of another log than origin names")
	}
	e.signer = s
}
