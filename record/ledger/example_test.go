// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"testing/fstest"

	"github.com/pellucid-mcp/pellucid/record/ledger"
)

// A published log, which the examples check.
type published struct {
	Keys       []string          `json:"keys"`
	Witness    string            `json:"witness"`
	Tiles      map[string]string `json:"tiles"`
	Checkpoint string            `json:"checkpoint"`
	Proof      string            `json:"proof"`
	Records    []struct {
		Envelope string `json:"envelope"`
	} `json:"records"`
}

func readPublished() (p published) {
	b, err := os.ReadFile("../../docs/spec/evidence/vectors.json")
	if err == nil {
		err = json.Unmarshal(b, &p)
	}
	if err != nil {
		log.Fatal(err)
	}
	return p
}

// export writes the log as the files of an export.
func (p published) export() fstest.MapFS {
	dir := fstest.MapFS{"checkpoint": {Data: []byte(p.Checkpoint)}}
	for path, hashes := range p.Tiles {
		data, err := hex.DecodeString(hashes)
		if err != nil {
			log.Fatal(err)
		}
		dir[path] = &fstest.MapFile{Data: data}
	}
	var entries []byte
	for _, r := range p.Records {
		entries = binary.BigEndian.AppendUint16(entries, uint16(len(r.Envelope)))
		entries = append(entries, r.Envelope...)
	}
	dir[fmt.Sprintf("tile/entries/000.p/%d", len(p.Records))] = &fstest.MapFile{Data: entries}
	return dir
}

// An auditor who has one key of the log checks a whole copy of it.
func ExampleVerifyExport() {
	files := readPublished()
	key, err := ledger.ParseKey(files.Keys[0])
	if err != nil {
		log.Fatal(err)
	}
	dir := files.export()
	trust := ledger.VerifyOptions{Keys: []*ledger.Key{key}}
	report, err := ledger.VerifyExport(context.Background(), dir, trust)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.OK(), report.Records, "records of", report.Checkpoint.Origin)

	dir["tile/entries/000.p/5"].Data[700] ^= 1
	report, err = ledger.VerifyExport(context.Background(), dir, trust)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.OK(), report.Problems[0])
	// Output:
	// true 5 records of log.example/evidence
	// false record 0 does not have the form that docs/spec/evidence.md gives
}

// One record is checked without the log.
func ExampleProof_Verify() {
	files := readPublished()
	proof, err := ledger.ParseProof([]byte(files.Proof))
	if err != nil {
		log.Fatal(err)
	}
	var keys []*ledger.Key
	for _, vkey := range files.Keys {
		key, err := ledger.ParseKey(vkey)
		if err != nil {
			log.Fatal(err)
		}
		keys = append(keys, key)
	}
	witness, err := ledger.ParseWitness(files.Witness)
	if err != nil {
		log.Fatal(err)
	}
	proven, err := proof.Verify(keys, []*ledger.Witness{witness}, 1)
	if err != nil {
		log.Fatal(err)
	}
	s := proven.Statement
	fmt.Println(proven.Index, s.Kind, s.Server, s.Tool, s.Reason, proven.Signed)
	// Output: 2 result-held files read_file control-token true
}
