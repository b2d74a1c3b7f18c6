// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// A Checkpoint is a size and root that the log stands for.
type Checkpoint struct {
	Origin string
	Size   int64
	Root   Hash
}

// text is the text of the note.
func (c Checkpoint) text() string { return fmt.Sprintf("%s\n%d\n%s\n", c.Origin, c.Size, c.Root) }

var (
	errCheckpoint = errors.New("ledger: checkpoint: it is not spelled as this format has it")
	errUnsigned   = errors.New("ledger: checkpoint: no key that was given has signed it")
	errSignature  = errors.New("ledger: checkpoint: a signature is wrong")
	errSigners    = errors.New("ledger: checkpoint: the signers are not all of one log")
)

// SignCheckpoint writes a C2SP checkpoint, signed by the key in force. A further
// signer is a key of the same log that was in force before.
func SignCheckpoint(size int64, root Hash, s *Signer, further ...*Signer) ([]byte, error) {
	signers := []note.Signer{s}
	for _, f := range further {
		if f.Name() != s.Name() {
			return nil, errSigners
		}
		signers = append(signers, f)
	}
	out, err := note.Sign(&note.Note{Text: Checkpoint{s.Name(), size, root}.text()}, signers...)
	if err != nil {
		return nil, fmt.Errorf("ledger: checkpoint: %w", err)
	}
	return out, nil
}

// An OpenedCheckpoint tells whose signatures hold.
type OpenedCheckpoint struct {
	Checkpoint
	Keys       []*Key        // of the log, whose signatures hold; never empty
	Cosigned   []Cosignature // those that hold
	Unverified int           // signatures by keys that were not given
}

// A Cosignature is a witness's signature of a checkpoint.
type Cosignature struct {
	Witness *Witness
	Time    time.Time // when it was made, by the witness's clock
}

// readCheckpoint reads a checkpoint without checking a signature.
func readCheckpoint(msg []byte) (Checkpoint, error) {
	text, _, ok := bytes.Cut(msg, []byte("\n\n"))
	if !ok || len(msg) > maxCheckpoint {
		return Checkpoint{}, errCheckpoint
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) != 3 || !ValidOrigin(lines[0]) {
		return Checkpoint{}, errCheckpoint
	}
	size, err1 := strconv.ParseInt(lines[1], 10, 64)
	root, err2 := tlog.ParseHash(lines[2])
	c := Checkpoint{lines[0], size, root}
	if err1 != nil || err2 != nil || size < 0 || size > maxSize || c.text() != string(text)+"\n" {
		return Checkpoint{}, errCheckpoint
	}
	return c, nil
}

// UnverifiedCheckpoint reads a checkpoint and checks no signature of it.
func UnverifiedCheckpoint(msg []byte) (Checkpoint, error) { return readCheckpoint(msg) }

// CheckpointSize returns the size of the log that a checkpoint claims; 0 if msg is not a
// checkpoint. It checks no signature.
func CheckpointSize(msg []byte) int64 {
	c, err := readCheckpoint(msg)
	if err != nil {
		return 0
	}
	return c.Size
}

// OpenCheckpoint reads a checkpoint and checks every signature whose key is given.
// It refuses one that no given key of the log has signed, and one where the
// signature of any given key is wrong.
func OpenCheckpoint(msg []byte, keys []*Key, witnesses []*Witness) (*OpenedCheckpoint, error) {
	c, err := readCheckpoint(msg)
	if err != nil {
		return nil, err
	}
	lines, err := signatureLines(msg)
	if err != nil {
		return nil, err
	}
	out := &OpenedCheckpoint{Checkpoint: c}
	known := verifiers{seen: map[verifierID]bool{}}
	for _, k := range keys {
		known.add(k)
	}
	for _, w := range witnesses {
		known.add(w)
	}
	n, err := note.Open(msg, note.VerifierList(known.list...))
	var invalid *note.InvalidSignatureError
	var unverified *note.UnverifiedNoteError
	switch {
	case errors.As(err, &invalid):
		return nil, errSignature
	case errors.As(err, &unverified):
		return nil, errUnsigned
	case err != nil:
		return nil, errCheckpoint
	}
	// A signature twice is another spelling of the same checkpoint.
	if lines != len(n.Sigs)+len(n.UnverifiedSigs) {
		return nil, errCheckpoint
	}
	out.Unverified = len(n.UnverifiedSigs)
	for _, sig := range n.Sigs {
		for _, v := range known.list {
			if v.Name() == sig.Name && v.KeyHash() == sig.Hash {
				out.add(v, sig)
			}
		}
	}
	if len(out.Keys) == 0 {
		return nil, errUnsigned
	}
	return out, nil
}

func (c *OpenedCheckpoint) add(v note.Verifier, sig note.Signature) {
	switch v := v.(type) {
	case *Key:
		if v.Name() == c.Origin {
			c.Keys = append(c.Keys, v)
		}
	case *Witness:
		raw, _ := decodeBase64([]byte(sig.Base64))
		c.Cosigned = append(c.Cosigned, Cosignature{v, cosignedAt(raw[4:])})
	}
}

// verifiers are keys, each once: note refuses one that is there twice. A log may name as
// many as it has records.
type verifiers struct {
	list []note.Verifier
	seen map[verifierID]bool
}

type verifierID struct {
	name string
	hash uint32
}

func (vs *verifiers) add(v note.Verifier) {
	id := verifierID{v.Name(), v.KeyHash()}
	if !vs.seen[id] {
		vs.seen[id] = true
		vs.list = append(vs.list, v)
	}
}

// signatureLines counts the signatures of a note and checks that each is spelled
// in the one canonical way, which note does not.
func signatureLines(msg []byte) (int, error) {
	_, sigs, _ := bytes.Cut(msg, []byte("\n\n"))
	n := 0
	for line := range bytes.Lines(sigs) {
		_, b64, ok := bytes.Cut(bytes.TrimSuffix(bytes.TrimPrefix(line, []byte("\u2014 ")), []byte{'\n'}), []byte{' '})
		if _, canonical := decodeBase64(b64); !ok || !canonical {
			return 0, errCheckpoint
		}
		n++
	}
	return n, nil
}

// AddCosignature adds the signature lines of witnesses to a checkpoint, each of
// which ends in a line feed, after checking them.
func AddCosignature(checkpoint, lines []byte, keys []*Key, witnesses []*Witness) ([]byte, error) {
	out := append(bytes.Clone(checkpoint), lines...)
	before, err := OpenCheckpoint(checkpoint, keys, witnesses)
	if err != nil {
		return nil, err
	}
	after, err := OpenCheckpoint(out, keys, witnesses)
	if err != nil {
		return nil, err
	}
	if after.Checkpoint != before.Checkpoint || after.Unverified != before.Unverified || len(after.Cosigned) == len(before.Cosigned) {
		return nil, errSignature
	}
	return out, nil
}
