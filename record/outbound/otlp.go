// SPDX-License-Identifier: Apache-2.0

package outbound

import (
	"encoding/hex"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/proto"

	"github.com/pellucid-mcp/pellucid/record/ledger"
)

func text(key, value string) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: value}}}
}

func integer(key string, n int64) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: n}}}
}

// logRecord is a record as a log of OpenTelemetry: every record is one.
func logRecord(index int64, st *ledger.Statement, now time.Time) *logspb.LogRecord {
	at := []*commonpb.KeyValue{integer("pellucid.record.index", index), text("pellucid.record.id", st.ID.String()), text("pellucid.record.kind", string(st.Kind))}
	add := func(key, value string) {
		if value != "" {
			at = append(at, text(key, value))
		}
	}
	if st.Of != (ledger.ID{}) {
		add("pellucid.record.of", st.Of.String())
	}
	add("pellucid.server", st.Server)
	add("gen_ai.tool.name", st.Tool)
	add("mcp.method.name", st.Method)
	add("pellucid.shape", st.Shape)
	add("pellucid.verdict", st.Verdict)
	add("pellucid.rule", st.Rule)
	add("pellucid.reason", st.Reason)
	add("pellucid.actor", st.Actor)
	add("pellucid.profile", st.Profile)
	counts := func(key string, list []ledger.Count) {
		for _, c := range list {
			at = append(at, integer(key+string(c.Code), c.N))
		}
	}
	counts("pellucid.found.", st.Findings)
	counts("pellucid.withheld.", st.Withheld)
	counts("pellucid.not_inspected.", st.NotInspected)
	for _, n := range st.Numbers {
		at = append(at, integer("pellucid.number."+n.Name, n.N))
	}
	for _, s := range st.Subjects {
		add("pellucid.subject."+string(s.Role), hex.EncodeToString(s.Digest[:]))
	}
	number, name := logspb.SeverityNumber_SEVERITY_NUMBER_INFO, "INFO"
	switch severityOf(st) {
	case severityMedium:
		number, name = logspb.SeverityNumber_SEVERITY_NUMBER_WARN, "WARN"
	case severityHigh, severityCritical:
		number, name = logspb.SeverityNumber_SEVERITY_NUMBER_ERROR, "ERROR"
	}
	return &logspb.LogRecord{TimeUnixNano: uint64(max(st.Time.UnixNano(), 0)), ObservedTimeUnixNano: uint64(max(now.UnixNano(), 0)), SeverityNumber: number, SeverityText: name,
		EventName: "pellucid.record", Body: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: title(st)}}, Attributes: at}
}

// otlpBody is a request of OTLP over HTTP with these logs. An ExportLogsServiceRequest is a LogsData in all
// but name.
func otlpBody(list []*logspb.LogRecord) ([]byte, error) {
	return proto.Marshal(&logspb.LogsData{ResourceLogs: []*logspb.ResourceLogs{{
		Resource:  &resourcepb.Resource{Attributes: []*commonpb.KeyValue{text("service.name", "pellucid")}},
		ScopeLogs: []*logspb.ScopeLogs{{Scope: &commonpb.InstrumentationScope{Name: "github.com/pellucid-mcp/pellucid/record/outbound"}, LogRecords: list}},
	}}})
}
