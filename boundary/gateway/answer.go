// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"strconv"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/scrub"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// An answer is an error of our own. Its text is constant: not one byte of it
// was chosen by a third party. The codes are those of package wire.
type answer struct {
	code int
	text string
}

var (
	errWithheld    = answer{wire.CodeWithheld, "pellucid: withheld: the server's answer could not be made safe"}
	errHeld        = answer{wire.CodeHeld, "pellucid: the server's answer is held until a person has looked at it; once it is released, the same request gets it"}
	errFull        = answer{wire.CodeWithheld, "pellucid: withheld: the server's answer has to wait for a person, and there is no room in the queue for that"}
	errTimeout     = answer{wire.CodeTimeout, "pellucid: the server did not answer in time"}
	errGone        = answer{wire.CodeGone, "pellucid: the server is gone"}
	errBusy        = answer{wire.CodeBusy, "pellucid: too many requests under way"}
	errNoRoom      = answer{wire.CodeNoRoom, "pellucid: too much is under way to look at the server's answer: ask again"}
	errBadAnswer   = answer{wire.CodeUnacceptable, "pellucid: the server's answer was not acceptable MCP"}
	errDenied      = answer{wire.CodeDenied, "pellucid: denied by policy"}
	errUnsent      = answer{wire.CodeUnsent, "pellucid: the request could not be passed on"}
	errDuplicate   = answer{wire.CodeInvalid, "pellucid: a request with this id is already under way"}
	errCaseVariant = answer{wire.CodeParams, "pellucid: a member of params has another case than the protocol's"}
	errMismatch    = answer{wire.CodeHeaderMismatch, "pellucid: a header and the body differ"}
	errClientGone  = answer{wire.CodeClientGone, "pellucid: the client did not answer"}
	errUnapproved  = answer{wire.CodeUnapproved, "pellucid: held until a person has looked at it"}
	errUnrecorded  = answer{wire.CodeUnrecorded, "pellucid: withheld: the decision about the result could not be recorded"}
	errNoSampling  = answer{wire.CodeNoSampling, mcpmsg.NoSampling}
	errNoMethod    = answer{wire.CodeNoMethod, "pellucid: method not found"}
	errNoResource  = answer{wire.CodeNoResource, "pellucid: no such resource"}
)

// raw is the error object. evidence, where there is one, names the decision.
func (a answer) raw(evidence *ID) []byte {
	dst := append([]byte(`{"code":`), strconv.Itoa(a.code)...)
	dst = strictjson.AppendQuote(append(dst, `,"message":`...), a.text)
	if evidence != nil {
		dst = append(append(append(dst, `,"data":{"evidence":"`...), evidence.String()...), `"}`...)
	}
	return append(dst, '}')
}

func (a answer) message(id wire.ID, evidence *ID) *wire.Message {
	m := wire.NewError(id, a.raw(evidence))
	m.Whole = true
	return m
}

// to answers a request of the client.
func (a answer) to(k *call, evidence *ID) *wire.Message {
	m := k.addressed(a.message(k.id, evidence))
	k.done(a.outcome(), m.Len())
	return m
}

// Placeholders. The id is hexadecimal and ours.
const (
	placeholderBlock   = `{"type":"text","text":"[pellucid withheld this content; run: pellucid explain `
	placeholderWhole   = `[pellucid withheld this result; run: pellucid explain `
	placeholderBusy    = `[pellucid could not look at this result, since too much was under way: ask again; run: pellucid explain `
	placeholderHeld    = `[pellucid holds this result until a person has looked at it; run: pellucid explain `
	placeholderTool    = `[pellucid holds this tool until a person has looked at it; run: pellucid explain `
	placeholderBlocked = `[pellucid refused this call: a reviewer has blocked the tool; run: pellucid explain `
	placeholderForm    = `[pellucid refused this call: the server's description of the tool is not valid; run: pellucid explain `
	placeholderDeny    = `[pellucid refused this call: the operator's policy does not allow it; run: pellucid explain `
	placeholderCall    = `[pellucid holds this call until a person has looked at it; once it is released, the same call goes through; run: pellucid explain `
	placeholderFull    = `[pellucid withheld this result: it has to wait for a person, and there is no room in the queue for that; run: pellucid explain `
	placeholderWait    = `[pellucid refused this call: it has to wait for a person, and there is no room in the queue for that; run: pellucid explain `
)

// blockPlaceholder stands for one content block.
func blockPlaceholder(id ID) []byte {
	return append(append([]byte(placeholderBlock), id.String()...), `]"}`...)
}

// leftOutBlock stands for the last n blocks of a list.
func leftOutBlock(id ID, n, all int) []byte {
	return fmt.Appendf(nil, `{"type":"text","text":"[pellucid: %s of %s blocks left out: they are too many for their length; run: pellucid explain %s]"}`,
		groupThousands(n), groupThousands(all), id)
}

// groupThousands writes n with a comma before each three digits.
func groupThousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// toolPlaceholder stands for the whole result of a tool. text is one of those above;
// typed says that results have a resultType. meta is the raw value of its provenance.
func toolPlaceholder(text string, id ID, typed bool, metaKey string, meta []byte) []byte {
	dst := []byte(`{"content":[{"type":"text","text":"` + text + id.String() + `]"}],"isError":true`)
	if typed {
		dst = append(dst, `,"resultType":"complete"`...)
	}
	dst = append(append(append(dst, `,"_meta":{"`...), metaKey...), `":`...)
	return append(append(dst, meta...), `}}`...)
}

// unseen is the provenance of a tool's result that was refused without a look at it.
func unseen(id ID, o frame.Origin, p scrub.Profile, code finding.Code) []byte {
	note := frame.Provenance{
		Origin: o, Kind: frame.KindMeta,
		Profile: p.String(), SanitationVersion: p.Version(), UnicodeVersion: scrub.UnicodeVersion,
		Evidence: id.String(), Findings: []frame.Finding{{Field: frame.Other, Code: code, Count: 1}},
	}
	return note.AppendJSON(nil)
}
