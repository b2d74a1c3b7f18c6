// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"errors"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// storeCode is the code of a Receipt for an error of the store, and whether the
// same may succeed later.
func storeCode(err error) (code string, retry bool) {
	switch {
	case errors.Is(err, ErrBusy):
		return CodeBusy, true
	case errors.Is(err, ErrFull):
		return CodeFull, true
	case errors.Is(err, ErrInvalid):
		return CodeInvalid, false
	}
	return CodeUnavailable, true
}

// StoreFailed reports whether the code of r is about the store, not about what was handed in.
func (r Receipt) StoreFailed() bool {
	return r.Code == CodeBusy || r.Code == CodeFull || r.Code == CodeUnavailable
}

// refusal is the Receipt for a body that was refused with err. It names the hash
// where the body has one.
func refusal(body []byte, err error) Receipt {
	var r *attest.Refusal
	if !errors.As(err, &r) {
		return Receipt{Code: CodeInvalid}
	}
	out := Receipt{
		Code: string(r.Code), Pointer: r.Pointer, Offset: r.Offset, Text: r.Text, Retry: r.Code == finding.KeyUnavailable,
	}
	switch r.Code {
	case finding.NotJSON, finding.TooLong, finding.TooDeep, finding.TooMany: // not worth another look
	default:
		if h, err := attest.CanonicalHash(body, attest.StatedVersion(body)); err == nil {
			out.Hash = h.String()
		}
	}
	return out
}
