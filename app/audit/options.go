// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"strings"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// ParseOptions reads what a person names for a verification: public keys of the log and of
// witnesses, how many of the witnesses must have signed, and files with older checkpoints.
func ParseOptions(keys, witnesses []string, quorum int, older []string) (o ledger.VerifyOptions, err error) {
	o.Quorum = quorum
	for _, s := range keys {
		k, err := ledger.ParseKey(s)
		if err != nil {
			return o, exit.With(exit.Usage, err)
		}
		o.Keys = append(o.Keys, k)
	}
	for _, s := range witnesses {
		w, err := ledger.ParseWitness(s)
		if err != nil {
			return o, exit.With(exit.Usage, err)
		}
		o.Witnesses = append(o.Witnesses, w)
	}
	for _, name := range older {
		b, err := readSmall(name)
		if err != nil {
			return o, err
		}
		o.Older = append(o.Older, b)
	}
	return o, nil
}

// VerifyExport verifies a log that was exported into a directory.
func VerifyExport(dir string, o ledger.VerifyOptions) (*ledger.Report, error) {
	ctx, stop := exit.UntilSignal()
	defer stop()
	export, err := terminal.OpenDir(dir)
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	return ledger.VerifyExport(ctx, export, o)
}

// VerifyProof verifies the proof in a file.
func VerifyProof(name string, o ledger.VerifyOptions) (*ledger.Proven, error) {
	b, err := readSmall(name)
	if err != nil {
		return nil, err
	}
	p, err := ledger.ParseProof(b)
	if err != nil {
		return nil, err
	}
	return p.Verify(o.Keys, o.Witnesses, o.Quorum)
}

// readSmall reads a checkpoint or a proof.
func readSmall(name string) ([]byte, error) {
	b, err := terminal.ReadInput(name, strings.NewReader(""))
	if err == nil && len(b) > 1<<20 {
		err = fmt.Errorf("read %s: longer than 1 MiB", finding.Quote(name))
	}
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	return b, nil
}
