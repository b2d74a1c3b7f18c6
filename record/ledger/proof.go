// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/tlog"
)

// A Proof shows that a record stands in a log: a C2SP tlog-proof whose extra data
// is the envelope, so that the file needs nothing beside it but the keys.
type Proof struct {
	Envelope   []byte
	Index      int64
	Path       []Hash
	Checkpoint []byte
}

var (
	errProof       = errors.New("ledger: proof: it is not spelled as this format has it")
	errInclusion   = errors.New("ledger: proof: the record does not stand there under that checkpoint")
	errConsistency = errors.New("ledger: proof: the older log is not the beginning of the newer one")
	errQuorum      = errors.New("ledger: proof: too few of the witnesses have cosigned the checkpoint")
	errRecordKey   = errors.New("ledger: proof: the signature of the record is wrong")
)

// Prove makes the proof of one record under the latest checkpoint of the source. A
// source whose tiles do not lead to that checkpoint's root is refused; who signed
// the checkpoint is for Verify to say.
func Prove(ctx context.Context, src Source, index int64) (*Proof, error) {
	msg, err := src.Checkpoint(ctx)
	if err != nil {
		return nil, fmt.Errorf("ledger: prove: checkpoint: %w", err)
	}
	c, err := readCheckpoint(msg)
	if err != nil {
		return nil, err
	}
	if index < 0 || index >= c.Size {
		return nil, ErrNotFound
	}
	list, err := src.Entries(ctx, index, 1)
	if err != nil {
		return nil, fmt.Errorf("ledger: prove: record: %w", err)
	}
	if len(list) != 1 {
		return nil, ErrNotFound
	}
	path, err := tlog.ProveRecord(c.Size, index, hashReader(ctx, src, c))
	if err != nil {
		return nil, fmt.Errorf("ledger: prove: %w", err)
	}
	if tlog.CheckRecord(path, c.Size, c.Root, index, LeafHash(list[0])) != nil {
		return nil, errInclusion
	}
	return &Proof{list[0], index, path, msg}, nil
}

const proofHeader = "c2sp.org/tlog-proof@v1\n"

// Bytes is the text of the proof.
func (p *Proof) Bytes() []byte {
	b := []byte(proofHeader + "extra ")
	b = base64.StdEncoding.AppendEncode(b, p.Envelope)
	b = fmt.Appendf(b, "\nindex %d\n", p.Index)
	for _, h := range p.Path {
		b = append(append(b, h.String()...), '\n')
	}
	return append(append(b, '\n'), p.Checkpoint...)
}

// ParseProof reads a proof, strictly.
func ParseProof(b []byte) (*Proof, error) {
	if len(b) > 2*maxEnvelope+2*maxCheckpoint {
		return nil, errProof
	}
	head, checkpoint, ok := bytes.Cut(b, []byte("\n\n"))
	lines := strings.Split(string(head), "\n")
	if !ok || len(lines) < 3 || len(lines) > 3+63 {
		return nil, errProof
	}
	p := &Proof{Checkpoint: checkpoint}
	extra, ok1 := strings.CutPrefix(lines[1], "extra ")
	index, ok2 := strings.CutPrefix(lines[2], "index ")
	if !ok1 || !ok2 {
		return nil, errProof
	}
	var err error
	if p.Index, err = strconv.ParseInt(index, 10, 64); err != nil {
		return nil, errProof
	}
	if p.Envelope, ok = decodeBase64([]byte(extra)); !ok {
		return nil, errProof
	}
	for _, line := range lines[3:] {
		h, err := tlog.ParseHash(line)
		if err != nil {
			return nil, errProof
		}
		p.Path = append(p.Path, h)
	}
	if !bytes.Equal(p.Bytes(), b) {
		return nil, errProof
	}
	return p, nil
}

// A Proven record is what a proof shows.
type Proven struct {
	Index      int64
	Statement  *Statement
	Checkpoint *OpenedCheckpoint
	// Signed: the record's own signature was checked, too. It was not if the key of
	// its time is not given; the checkpoint alone vouches for it then.
	Signed bool
}

// Verify checks a proof, offline. It needs a key of the log that signed the
// checkpoint, and the cosignatures of quorum of the witnesses.
func (p *Proof) Verify(keys []*Key, witnesses []*Witness, quorum int) (*Proven, error) {
	c, err := OpenCheckpoint(p.Checkpoint, keys, witnesses)
	if err != nil {
		return nil, err
	}
	if len(c.Cosigned) < quorum {
		return nil, errQuorum
	}
	if p.Index < 0 || p.Index >= c.Size || tlog.CheckRecord(p.Path, c.Size, c.Root, p.Index, LeafHash(p.Envelope)) != nil {
		return nil, errInclusion
	}
	e, err := ParseEnvelope(p.Envelope)
	if err != nil {
		return nil, err
	}
	out := &Proven{Index: p.Index, Checkpoint: c}
	for _, k := range keys {
		if k.ID() == e.KeyID && !out.Signed {
			if !e.Verify(k) {
				return nil, errRecordKey
			}
			out.Signed = true
		}
	}
	out.Statement, err = ParseStatement(e.Statement)
	return out, err
}

// ProveConsistency returns the hashes that show that the log of the older size is
// the beginning of the one of the newer checkpoint (RFC 6962, section 2.1.2).
func ProveConsistency(ctx context.Context, src Source, older int64, newer Checkpoint) ([]Hash, error) {
	if older < 0 || older > newer.Size {
		return nil, errConsistency
	}
	if older == 0 {
		return nil, nil
	}
	path, err := tlog.ProveTree(newer.Size, older, hashReader(ctx, src, newer))
	if err != nil {
		return nil, fmt.Errorf("ledger: prove: %w", err)
	}
	return path, nil
}

// VerifyConsistency checks what ProveConsistency returned.
func VerifyConsistency(older, newer Checkpoint, path []Hash) error {
	switch {
	case older.Origin != newer.Origin || older.Size > newer.Size:
		return errConsistency
	case older.Size == 0:
		if len(path) > 0 || older.Root != new(Tree).Root() {
			return errConsistency
		}
	case tlog.CheckTree(path, newer.Size, newer.Root, older.Size, older.Root) != nil:
		return errConsistency
	}
	return nil
}

// hashReader reads hashes of a tree from tiles, and believes a tile only if it
// leads to the root.
func hashReader(ctx context.Context, src Source, c Checkpoint) tlog.HashReader {
	return tlog.TileHashReader(tlog.Tree{N: c.Size, Hash: c.Root}, tileReader{ctx, src})
}

// A tileReader is a Source as tlog sees it.
type tileReader struct {
	ctx context.Context
	src Source
}

// Height, ReadTiles and SaveTiles implement tlog.TileReader.
func (r tileReader) Height() int { return tileHeight }

func (r tileReader) ReadTiles(tiles []tlog.Tile) ([][]byte, error) {
	var out [][]byte
	for _, t := range tiles {
		data, err := r.src.Tile(r.ctx, t.L, t.N, t.W)
		if err != nil {
			return nil, err
		}
		if len(data) < t.W*hashSize {
			return nil, ErrNotFound
		}
		out = append(out, data[:t.W*hashSize])
	}
	return out, nil
}

func (r tileReader) SaveTiles([]tlog.Tile, [][]byte) {}
