// SPDX-License-Identifier: Apache-2.0

// Package outbound sends the records of the ledger to systems of others: as events of OCSF, and as logs of OpenTelemetry.
//
// It follows the log, which is its queue: a batch is sent, then the position is stored, so that a restart
// goes on where it stopped. A batch may be sent twice, and the record that begins a finding may come
// earlier than it stands in the log. What a receiver refuses is left out, counted and told. Nothing but labels, codes, numbers, times and salted digests is sent.
package outbound

import (
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// OCSFVersion is the version of the schema whose class Detection Finding (2004) the events have, with the
// profile security_control.
const OCSFVersion = "1.5.0"

// The ids of OCSF that are used.
const (
	classFinding = 2004

	activityCreate, activityUpdate, activityClose = 1, 2, 3

	severityInfo, severityMedium, severityHigh, severityCritical = 1, 3, 4, 5

	statusNew, statusInProgress, statusSuppressed, statusResolved, statusArchived = 1, 2, 3, 4, 5

	actionAllowed, actionDenied, actionObserved, actionModified = 1, 2, 3, 4

	dispositionAllowed, dispositionBlocked, dispositionQuarantined, dispositionDeleted = 1, 2, 3, 5
	dispositionDropped, dispositionApproved, dispositionRestored                       = 6, 8, 9
)

// A detection is an event of the class Detection Finding.
type detection struct {
	Activity    int       `json:"activity_id"`
	Category    int       `json:"category_uid"`
	Class       int       `json:"class_uid"`
	Type        int       `json:"type_uid"`
	Time        int64     `json:"time"` // milliseconds since 1970
	Severity    int       `json:"severity_id"`
	Status      int       `json:"status_id"`
	Action      int       `json:"action_id"`
	Disposition int       `json:"disposition_id"`
	Message     string    `json:"message"`
	Info        info      `json:"finding_info"`
	Metadata    metadata  `json:"metadata"`
	Resources   []thing   `json:"resources,omitempty"`
	Unmapped    *unmapped `json:"unmapped"`
}

type info struct {
	UID   string   `json:"uid"` // of the decision or held item
	Title string   `json:"title"`
	Types []string `json:"types,omitempty"` // codes
}

type metadata struct {
	Version  string   `json:"version"`
	UID      string   `json:"uid"`      // of the record: the same event has the same
	Sequence int64    `json:"sequence"` // index of the record in the log
	LogName  string   `json:"log_name"`
	Profiles []string `json:"profiles"`
	Product  thing    `json:"product"`
}

type thing struct {
	Name   string `json:"name"`
	Type   string `json:"type,omitempty"`
	Vendor string `json:"vendor_name,omitempty"`
}

// unmapped is what a record has that the class has no place for.
type unmapped struct {
	Kind         string            `json:"kind"`
	Verdict      string            `json:"verdict,omitempty"`
	Rule         string            `json:"rule,omitempty"`
	Reason       string            `json:"reason,omitempty"`
	Method       string            `json:"method,omitempty"`
	Shape        string            `json:"shape,omitempty"`
	Actor        string            `json:"actor,omitempty"`
	Findings     map[string]int64  `json:"findings,omitempty"`
	Withheld     map[string]int64  `json:"withheld,omitempty"`
	NotInspected map[string]int64  `json:"not_inspected,omitempty"`
	Subjects     map[string]string `json:"subjects,omitempty"` // salted digests, by role
}

// detectionOf is the event of a record. ok is false for a record that is no finding: a message that passed,
// a configuration, a key.
func detectionOf(index int64, st *ledger.Statement) (d *detection, ok bool) {
	d = &detection{Category: 2, Class: classFinding, Time: st.Time.UnixMilli(), Severity: severityOf(st), Action: actionObserved, Disposition: dispositionAllowed, Status: statusNew, Activity: activityCreate}
	if !d.judge(st) {
		return nil, false
	}
	of := st.ID
	if st.Of != (ledger.ID{}) {
		of = st.Of
	}
	d.Info = info{UID: of.String(), Title: title(st), Types: codes(st)}
	d.Message = d.Info.Title
	d.Metadata = metadata{Version: OCSFVersion, UID: st.ID.String(), Sequence: index, LogName: "pellucid evidence", Profiles: []string{"security_control"},
		Product: thing{Name: "Pellucid", Vendor: "Pellucid"}}
	if st.Server != "" {
		name, kind := st.Server, "MCP server"
		if st.Tool != "" {
			name, kind = name+"/"+st.Tool, "MCP tool"
		}
		d.Resources = []thing{{Name: name, Type: kind}}
	}
	d.Unmapped = &unmapped{Kind: string(st.Kind), Verdict: st.Verdict, Rule: st.Rule, Reason: st.Reason, Method: st.Method, Shape: st.Shape, Actor: st.Actor,
		Findings: tally(st.Findings), Withheld: tally(st.Withheld), NotInspected: tally(st.NotInspected), Subjects: subjects(st)}
	return d, true
}

// append appends the event as one line.
func (d *detection) append(dst []byte) (line []byte, ok bool) {
	d.Type = classFinding*100 + d.Activity
	b, err := json.Marshal(d)
	if err != nil {
		return dst, false // never: labels and numbers alone
	}
	return append(append(dst, b...), '\n'), true
}

// judge fills what was done, and reports whether the record is a finding.
func (d *detection) judge(st *ledger.Statement) bool {
	set := func(activity, status, action, disposition int) bool {
		d.Activity, d.Status, d.Action, d.Disposition = activity, status, action, disposition
		return true
	}
	switch st.Kind {
	case ledger.Message:
		switch st.Verdict {
		case "changed":
			return set(activityCreate, statusNew, actionModified, dispositionAllowed)
		case "withheld":
			return set(activityCreate, statusNew, actionDenied, dispositionBlocked)
		case "dropped":
			return set(activityCreate, statusNew, actionDenied, dispositionDropped)
		}
		return d.Severity > severityInfo
	case ledger.ResultHeld:
		return set(activityUpdate, statusInProgress, actionDenied, dispositionQuarantined)
	case ledger.ResultReleased:
		return set(activityUpdate, statusInProgress, actionAllowed, dispositionRestored)
	case ledger.ResultTaken:
		return set(activityClose, statusSuppressed, actionAllowed, dispositionApproved)
	case ledger.ResultDenied:
		return set(activityClose, statusResolved, actionDenied, dispositionDeleted)
	case ledger.ResultExpired:
		return set(activityClose, statusArchived, actionDenied, dispositionDeleted)
	case ledger.SurfaceChanged:
		return st.Reason == "" && set(activityCreate, statusNew, actionDenied, dispositionQuarantined)
	case ledger.SurfaceRejected:
		return set(activityCreate, statusNew, actionDenied, dispositionBlocked)
	case ledger.Classified:
		return (st.Verdict == "injection" || st.Verdict == "suspected") && set(activityUpdate, statusInProgress, actionObserved, dispositionAllowed)
	case ledger.Counterfactual:
		switch st.Verdict {
		case "hijack":
			return set(activityCreate, statusNew, actionDenied, dispositionBlocked)
		case "quarantined":
			return set(activityUpdate, statusInProgress, actionDenied, dispositionBlocked)
		case "refused", "waiting":
			return set(activityCreate, statusNew, actionDenied, dispositionBlocked)
		case "repaired":
			return set(activityCreate, statusNew, actionModified, dispositionAllowed)
		}
		return false
	case ledger.AttestationRefused, ledger.RecordsLost:
		return true
	}
	return false
}

// severityOf is that of the worst code of a record.
func severityOf(st *ledger.Statement) int {
	switch st.Kind {
	case ledger.Counterfactual:
		if st.Verdict == "hijack" {
			return severityCritical
		}
		return severityHigh
	case ledger.SurfaceChanged, ledger.RecordsLost, ledger.Classified:
		return severityMedium
	case ledger.SurfaceRejected:
		return severityHigh
	}
	worst := finding.Info
	for _, list := range [...][]ledger.Count{st.Findings, st.Withheld} {
		for _, c := range list {
			worst = max(worst, c.Code.Severity())
		}
	}
	if c := finding.Code(strings.TrimPrefix(st.Reason, "proven:")); c.Known() {
		worst = max(worst, c.Severity())
	}
	switch worst {
	case finding.Error:
		return severityHigh
	case finding.Warn:
		return severityMedium
	}
	return severityInfo
}

// titles are the sentences of the kinds.
var titles = map[ledger.Kind]string{
	ledger.ResultHeld: "A result or call was held for a reviewer", ledger.ResultReleased: "A reviewer released a held item",
	ledger.ResultTaken: "A released result was delivered", ledger.ResultDenied: "A reviewer denied a held item", ledger.ResultExpired: "A held item expired",
	ledger.SurfaceChanged: "A server says of itself what was not approved", ledger.SurfaceRejected: "The check refused what a server says of itself",
	ledger.Classified: "A classifier took a text for an injection", ledger.AttestationRefused: "An attestation was refused",
	ledger.RecordsLost: "Events could not be recorded",
}

func title(st *ledger.Statement) string {
	switch {
	case st.Kind == ledger.Counterfactual && st.Verdict == "hijack":
		return "Text of a tool took control of a model"
	case st.Kind == ledger.Counterfactual && st.Verdict == "quarantined":
		return "Text that took control of a model was blocked"
	case st.Kind == ledger.Counterfactual:
		return "The guard decided about calls that a model proposed"
	case titles[st.Kind] != "":
		return titles[st.Kind]
	case st.Kind == ledger.Message && st.Shape == "call":
		if strings.HasPrefix(st.Rule, "policy:") || st.Verdict == "passed" {
			return "A call of a tool was decided by the policy"
		}
		return "A request of the client was refused"
	case st.Kind == ledger.Message && st.Verdict == "changed":
		return "Text was removed from a message of a server"
	case st.Kind == ledger.Message && st.Verdict == "passed":
		return "A message of a server passed"
	case st.Kind == ledger.Message:
		return "A message of a server was withheld"
	}
	return "Record " + string(st.Kind)
}

func codes(st *ledger.Statement) (out []string) {
	seen := map[finding.Code]bool{}
	for _, list := range [...][]ledger.Count{st.Findings, st.Withheld} {
		for _, c := range list {
			if !seen[c.Code] {
				seen[c.Code], out = true, append(out, string(c.Code))
			}
		}
	}
	return out
}

func tally(list []ledger.Count) map[string]int64 {
	out := map[string]int64{}
	for _, c := range list {
		out[string(c.Code)] += c.N
	}
	return out
}

func subjects(st *ledger.Statement) map[string]string {
	out := map[string]string{}
	for _, s := range st.Subjects {
		out[string(s.Role)] = hex.EncodeToString(s.Digest[:])
	}
	return out
}
