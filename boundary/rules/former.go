// SPDX-License-Identifier: Apache-2.0

package rules

import "strings"

// former has the members and values of the configuration that this build no longer has and that a page once
// showed, each with what to do now. A key is a path, in which * stands for a name that the author chooses; with
// =VALUE it is a value of that member.
var former = map[string]string{
	"classifiers.*.provider=onnx": "ONNX models are no longer run: serve the model over HTTP, and name it with provider: http, url and model",
	"evidence.export":             "exports are gone: pellucid ledger export --follow writes the records as JSON lines, and docs/evidence.md shows how an agent sends them",
	"telemetry.otlp":              "traces are gone: GET /metrics has the durations of requests, and a client's traceparent passes on to the server",
	"evidence.mirror":             "the mirror is gone: pellucid ledger export writes the same files, and docs/evidence.md shows how a scheduler copies them",
	"evidence.kms":                "KMS is gone: decrypt the key before the start, and name it with evidence.key: file:PATH",
	"ground":                      "grounding is a server like any other: servers: {grounding: {command: [pellucid-ground, serve, --stdio], profile: veritas-0.1}}; its members are flags of pellucid-ground serve: --db for store, and the others by their name in the singular (docs/attestations.md)",
	"http.session_news":           "session_news is gone: a client is always told that its session was brought back",
}

// formerAt returns what to do in place of the former member at path, or of its former value.
func formerAt(path, value string) (instead string, found bool) {
	for pattern, instead := range former {
		pattern, want, ofValue := strings.Cut(pattern, "=")
		before, after, named := strings.Cut(pattern, "*")
		matches := path == pattern || named && len(path) > len(before)+len(after) && strings.HasPrefix(path, before) && strings.HasSuffix(path, after)
		if matches && (!ofValue || value == want) {
			return instead, true
		}
	}
	return "", false
}
