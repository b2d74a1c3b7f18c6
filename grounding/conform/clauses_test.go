// SPDX-License-Identifier: Apache-2.0

package conform

// A clause is a line of docs/CONFORMANCE.md.
type clause struct {
	number string // of the RFC
	asks   string
	status string   // "": met
	code   []string // package.Name of what does it, or a package; none: not met yet
	vector string   // the corpus's clause whose vectors are evidence; "": none
	tests  []string // package.TestName of what shows it
}

// veritas lists what the RFC asks of an adapter.
var veritas = []clause{
	{number: "3", asks: "plain text only in rationale, qualifications and quotes; mistyped attestations are not stored and not returned", code: []string{"grounding/attest.Parse"}, vector: "3"},
	{number: "3", asks: "verdict and consensus_domain are enumerations, claim_hash is 32 bytes, validator_did a DID", code: []string{"grounding/attest.Registry", "grounding/consensus.Registry", "grounding/attest.ParseHash", "text/href.ParseDID"}, vector: "3"},
	{number: "4", asks: "an ordered pipeline, each step mandatory", code: []string{"text/scrub.Steps"}, tests: []string{"text/scrub.TestSpec", "text/scrub.TestAssumptions"}},
	{number: "4.1", asks: "caps of 2,000, 2,000 and 1,000 bytes and of 5 quotes; what was cut is in _meta.truncated", code: []string{"grounding/attest.Projector", "grounding/attest.MaxQuotes"}, vector: "4.1"},
	{number: "4.2", asks: "Normalization Form KC", code: []string{"text/ucd.Append"}, vector: "4.2"},
	{number: "4.3", asks: "confusables: reject, replace or flag; replacements are in _meta.confusables_replaced", code: []string{"text/scrub.Confusables", "text/ucd.ASCIIPrototype"}, vector: "4.3"},
	{number: "4.4", asks: "bidi, zero-width, variation selectors and tags are stripped; positions are in _meta.stripped_positions", code: []string{"text/ucd.ClassOf", "text/ucd.InRFCSet"}, vector: "4.4"},
	{number: "4.5", asks: "URIs: RFC 3986, six schemes, no encoded hidden characters, 1,024 bytes, shown as [hostname] \u2192 URI", code: []string{"text/href.Parse", "text/href.URI"}, vector: "4.5"},
	{number: "4.6", asks: "residual tags and links are stripped; emphasis and backticks stay", code: []string{"text/scrub.Steps"}, vector: "4.6"},
	{number: "5.1", asks: "the shape of the response", code: []string{"grounding/ground.Adapter"}, vector: "5.1"},
	{number: "5.2", asks: "_untrusted_text and _untrusted_quote are always there, each with @type and warning", code: []string{"grounding/ground.Adapter"}, vector: "5.2"},
	{number: "6", asks: "no summary by a model", code: []string{"grounding/ground"}, tests: []string{"laws.TestImports"}},
	{number: "6", asks: "nothing that a renderer evaluates; no URI that is not hardened", code: []string{"grounding/ground.Adapter", "text/href.URI"}, vector: "6"},
	{number: "6", asks: "nothing is dropped without a record in _meta", code: []string{"text/scrub.Replay", "grounding/attest.Meta"}, vector: "6"},
	{number: "7", asks: "canonical hash 0.3: NFKC, confusables, strip, JCS, SHA-256; canonicalisation_version", code: []string{"grounding/attest.CanonicalHash", "grounding/attest.V03"}, vector: "7"},
	{number: "8.1", asks: "sanitation_version is truthful", code: []string{"grounding/attest.Meta"}, vector: "5.1"},
	{number: "9", asks: "the corpus is passed, and the rate and the deviations are published", code: []string{"grounding/corpus.All", "grounding/conform.Runner"}, tests: []string{"grounding/conform.TestGrounding", "grounding/conform.TestMCP", "e2e.TestGroundConforms"}},
}

// responses lists what "MCP response sanitisation" asks of a client's side.
var responses = []clause{
	{number: "layer 1", asks: "the typed shape of a result, each revision's", code: []string{"mcp/mcpshape.Check", "text/finding.ShapeInvalid"},
		tests: []string{"mcp/mcpshape.TestTableAgainstSchemas", "boundary/gateway.TestShapeWithheld"}},
	{number: "layer 1", asks: "structuredContent against a declared outputSchema; what does not match is a hard rejection", status: "met with `validate: strict` and `unverifiable: hold`, with deviations by default", code: []string{"boundary/validate.Schema", "boundary/gateway.Validation", "text/finding.SchemaInvalid"},
		tests: []string{"e2e.TestLetterSanitisation", "boundary/gateway.TestValidation", "boundary/validate.TestCheck", "boundary/gateway.TestReviewSchema"}},
	{number: "layer 1", asks: "schema errors are logged with server and tool", code: []string{"boundary/gateway.Decision"},
		tests: []string{"boundary/gateway.TestValidation", "boundary/gateway.TestDecisionLine"}},
	{number: "layer 2", asks: "NFKC", status: "met by `mcp`, a deviation by default", code: []string{"text/scrub.MCP", "text/ucd.Append"},
		tests: []string{"text/scrub.TestMCP", "text/scrub.TestDigitsOfHonestText", "boundary/gateway.TestDefaultProfile"}},
	{number: "layer 2", asks: "control tokens and role markers of every model family go", status: "met by `mcp`, with deviations by default", code: []string{"text/scrub.Tokens", "text/scrub.ControlToken", "text/scrub.RoleMarker"},
		tests: []string{"text/scrub.TestTokens", "e2e.TestLetterSanitisation", "text/scrub.TestDefused", "text/scrub.TestRestoreEveryText", "text/scrub.TestAttackCorpora", "text/scrub.TestFindingsOfTheView", "boundary/gateway.TestPoison"}},
	{number: "layer 2", asks: "invisible characters go", status: "met by `mcp`, with deviations by default", code: []string{"text/ucd.ClassOf"},
		tests: []string{"text/scrub.TestMCP", "text/scrub.TestUses", "text/scrub.TestAllowance", "boundary/gateway.TestMatrix"}},
	{number: "layer 2", asks: "a hard ceiling of characters", code: []string{"text/scrub.Policy"},
		tests: []string{"text/scrub.FuzzScrub", "boundary/gateway.TestRules"}},
	{number: "layer 3", asks: "a labelled untrusted segment with server and tool", code: []string{"text/frame.Key", "text/frame.Origin"},
		tests: []string{"text/frame.TestOpenRoundTrip", "boundary/gateway.TestCallIsFenced", "boundary/gateway.TestPlaces"}},
	{number: "signals", asks: "schema rejections and control tokens by server", code: []string{"boundary/meter"},
		tests: []string{"boundary/meter.TestDecisions", "e2e.TestLetterSanitisation"}},
	{number: "options 3-5", asks: "managed classifiers on top; of Prompt Shields each segment a document; none for what cannot hold an order", code: []string{"boundary/classify.Member", "boundary/classify/remote.Azure", "boundary/classify/remote.Bedrock", "boundary/classify/remote.NeMo", "boundary/gateway.Classifiers", "text/finding.Suspected"},
		tests: []string{"boundary/classify/remote.TestExchanges", "e2e.TestLetterSanitisation", "boundary/gateway.TestViewParts", "boundary/classify.TestApart", "boundary/gateway.TestClassifierHolds"}},
}

// provenance lists what the LLM provenance envelope asks of every answer.
var provenance = []clause{
	{number: "text", asks: "the NOTICE, with the provider as a parameter", code: []string{"text/frame.LLM"}, tests: []string{"text/frame.TestLLMNotice"}},
	{number: "text", asks: "a named tag with untrusted, source, model and tool; no model for a search", code: []string{"text/frame.LLM", "text/frame.LLMOrigin"}, tests: []string{"e2e.TestLetterProvenance", "text/frame.TestLLMEnvelope", "boundary/gateway.TestLLMForged"}},
	{number: "content", asks: "structuredContent: response or results, untrusted: true, source, model, citations or structured_results", code: []string{"text/frame.LLMContent"}, tests: []string{"text/frame.TestLLMContent", "boundary/gateway.TestMergeContent", "boundary/gateway.TestLLMAnswer"}},
	{number: "schema", asks: "outputSchema is extended with those members", code: []string{"text/frame.LLMSchema", "boundary/gateway.extendSchema"}, tests: []string{"boundary/gateway.TestExtendSchema", "boundary/gateway.TestLLMListed"}},
	{number: "boundary/surface", asks: "instructions and descriptions state the trust boundary", code: []string{"text/frame.LLM"}, tests: []string{"boundary/gateway.TestLLMInstructions", "boundary/gateway.TestLLMListed", "e2e.TestLetterProvenance"}},
	{number: "boundary/gateway", asks: "applied to every answer of the tools that the operator names", code: []string{"boundary/gateway.LLM"}, tests: []string{"boundary/gateway.TestLLMAnswer", "boundary/gateway.TestLLMNoAnswer"}},
}

// verifier lists what the pre-flight check of a server's textual surface asks.
var verifier = []clause{
	{number: "when", asks: "before a server becomes live; one that is flagged never does",
		status: "met with `admission.hidden: reject`, and by `check`; by default the item is withheld, and of the introduction the text",
		code:   []string{"boundary/admit", "boundary/surface.Gate"}, tests: []string{"boundary/admit.TestRejected", "boundary/admit.TestWithheld", "boundary/surface.TestGateWithholds", "boundary/surface.TestGateIntroduction", "boundary/admit.TestOut", "e2e.TestAdmissionRejects"}},
	{number: "pass 1", asks: "the 151 code points of SUSPICIOUS_UNICODE, in every text field of initialize, tools and their schemas, on raw text",
		status: "met with `wide: false`; by default those pass that an emoji or a language needs, and more code points are refused",
		code:   []string{"boundary/surface.Inspection", "boundary/surface.HiddenTextError"}, tests: []string{"boundary/surface.TestInspectExactSet", "boundary/surface.TestInspectEverywhere", "boundary/surface.TestInspectReal"}},
	{number: "pass 1", asks: "at every start, before any model is asked",
		code: []string{"boundary/admit"}, tests: []string{"e2e.TestLetterVerifier", "boundary/surface.TestGate"}},
	{number: "pass 2", asks: "the structured surface to a model, with the patterns to flag; only the literal OK is clean",
		code: []string{"boundary/surface.Review", "boundary/surface.Reviewer"}, tests: []string{"boundary/surface.TestReviewAnswers", "boundary/surface.TestReviewFrame", "boundary/reviewer.TestReviewerAnswers"}},
	{number: "pass 2", asks: "capability is not injection: an honest description of a dangerous tool passes", status: "the question says so; the answer is the model's",
		code: []string{"boundary/surface.Review"}, tests: []string{"boundary/surface.TestRubric", "boundary/surface.TestWording"}},
	{number: "pass 2", asks: "the model is a transport or a function of one's own", status: "met by HTTP",
		code: []string{"boundary/reviewer.Model"}, tests: []string{"boundary/reviewer.TestOwnJudge", "boundary/reviewer.TestReviewerAnswers"}},
	{number: "updates", asks: "an update is verified like a first version", status: "met with `pins: off`; by default it waits for a person, who is shown the model's opinion",
		code: []string{"boundary/surface.Gate"}, tests: []string{"e2e.TestLetterVerifier", "boundary/reviewer.TestOwnJudge"}},
	{number: "cache", asks: "OK alone is kept, by the whole surface, the model and the prompt's version; a rejection is asked again at the next start",
		code: []string{"boundary/surface.Cache"}, tests: []string{"boundary/surface.TestReviewCache", "cmd/pellucid.TestCheckReviewRemembered"}},
	{number: "error", asks: "the rejection carries the model's reasoning",
		code: []string{"boundary/surface.Gate"}, tests: []string{"cmd/pellucid.TestCheckReviewRejects", "boundary/surface.TestReviewFails"}},
}

// reassembly lists what ADR 0010 asks.
var reassembly = []clause{
	{number: "1", asks: "variants: removal, attenuation, reordering, isolation of capsules", status: "met by `ccr analyze --full`; the proxy removes, keeps alone and masks, as a fallback",
		code: []string{"model/counterfactual.KindRemove", "model/counterfactual.Attenuate", "model/counterfactual.Reorder", "model/counterfactual.Capsule"}, tests: []string{"model/counterfactual.TestSpecification", "model/counterfactual.TestReorder", "model/counterfactual.TestAttenuatePlaces", "model/counterfactual.TestCapsuleMovesTogether"}},
	{number: "2", asks: "identical calls of the model, without introspection and without features of one vendor",
		code: []string{"model/counterfactual/run", "model/llm"}, tests: []string{"model/counterfactual/run.TestRun", "model/guard.TestDecisions", "e2e.TestProviders"}},
	{number: "3", asks: "structured metrics of divergence: tool selection, similarity, policy, path", status: "reported by `ccr analyze`; they decide nothing",
		code: []string{"model/counterfactual.Metrics", "model/counterfactual.Recurs"}, tests: []string{"model/counterfactual.TestMetrics", "model/counterfactual.TestRecurs", "model/counterfactual.TestPolicy"}},
	{number: "4", asks: "the culprit is found: which segment, by which perturbation", status: "met; the proxy asks where values stand and a planner first",
		code: []string{"model/counterfactual.Drive", "model/counterfactual.Attribution"}, tests: []string{"model/counterfactual.TestVerdicts", "model/counterfactual.TestAdversary", "model/counterfactual.TestEndToEnd"}},
	{number: "5", asks: "response: suppress, quarantine, weigh down; evidence to the ledger",
		code: []string{"model/guard.Guard", "record/hold.Blocks", "record/trust.Book"}, tests: []string{"model/guard.TestBlame", "boundary/gateway.TestBlocked", "e2e.TestGuard"}},
	{number: "plan", asks: "deterministic seeds and a manifest for provenance",
		code: []string{"model/counterfactual.Replay"}, tests: []string{"model/counterfactual.TestTamperedRecord", "model/counterfactual.TestRunTwice"}},
	{number: "plan", asks: "configuration of budget, strategy and thresholds; metrics and audit trails", status: "met by `guard`; `ccr analyze` takes a budget alone",
		code: []string{"boundary/rules", "model/guard"}, tests: []string{"model/guard.TestAudit", "model/counterfactual/run.TestCeilings"}},
	{number: "verification", asks: "benign and poisoned segments; latency under a budget; records that the ledger's tools read",
		code: []string{"model/counterfactual.Budget", "model/counterfactual/run"}, tests: []string{"model/counterfactual.TestEndToEnd", "model/counterfactual.TestExhausted", "model/guard.TestDelegated", "cmd/pellucid.TestScripts"}},
}

// others are the documents without vectors of their own.
var others = []struct {
	title   string
	clauses []clause
	// departures from the letter, each a sentence
	departures []string
}{
	{"MCP response sanitisation", responses, []string{
		"`mcp` removes control tokens, `[INST]`, `<s>`, `</s>` and the role markers of templates (`### Instruction:`, `USER:` in capitals) wherever they stand. The default, `faithful`, defuses a token that is spelled plainly: look-alikes that no tokenizer reads stand for its delimiters (`<|im_start|>` becomes `⟨|im_start|⟩`), and what is written back is restored. Source code and documentation spell tokens: of 12,303 files of 12 packages 256 lost 3,173 tokens, and an agent that edited them wrote the loss back. A token in character references (`&lt;think&gt;`) stays and is noted, since no tokenizer reads it; nor one in visible look-alikes without bars; another disguise is removed under both. `control_tokens: remove` asks for the letter.",
		"In `faithful` a spelling that honest text uses too, such as `[INST]`, `<s>` or `USER:`, counts in the sequence of its template only, and is otherwise kept and flagged. The tokens specification lists them.",
		"A token counts in the case in which tokenizers spell it, and not as an index (`calls[CALL_ID]`) or a type argument (`Promise<tool_result> r;`) of source code; what is disguised counts in any case.",
		"NFKC is what the profile `mcp` does. Of 4,466 honest rows of the development corpora it changes the digits of 44 (`10⁶` becomes `106`), the default, `faithful`, those of none, and what was read must also match when it is edited. Tokens, role markers and classifiers look at the text in NFKC and without hidden characters under both.",
		"`faithful` keeps the hidden characters that an emoji or a language needs, up to a limit for each item (scrub, 3.6.1).",
		"`docs/examples/letter-response-sanitisation.yaml` switches the whole letter on.",
		"A result without the structuredContent that its schema promises is flagged; `validate: strict` withholds it. An error that a tool reports is delivered, without the structuredContent that the schema refuses.",
		"A schema that cannot be compiled or afforded is neither valid nor invalid; the operator decides.",
	}},
	{"MCP server verifier", verifier, []string{
		"Pass 1 rejects the exact set and, by default, every other hidden character that `faithful` would remove; `--no-wide` limits it to the 151 code points.",
		"Deviation of the default: a hit withholds its item, and of the server's own introduction the text, until a reviewer approves it. One character newer than the tables, in one description, otherwise takes away every tool of an honest server. `admission.hidden: reject` rejects the server, and `check` always does.",
		"What a server says otherwise than before waits for a person, item by item, whatever a model says of it; what a person has approved is not asked about again.",
		"`docs/examples/letter-server-verifier.yaml` switches the whole letter on.",
	}},
	{"LLM provenance envelope", provenance, []string{
		"A look-alike of the tag in the body is neutralised, so that no answer can close it.",
		"`untrusted`, `source` and `model` are the operator's; another member that an upstream sets stays, and ours stands in _meta. A model that neither names is left out.",
		"`docs/examples/letter-llm-provenance.yaml` switches the letter on for the document's four tools.",
	}},
	{"ADR 0010, counterfactual context reassembly", reassembly, []string{
		"Divergence is asked of the one proposed action, whether it recurs, and not of the whole answer: similarity of texts is a metric that is reported and decides nothing.",
		"Attenuation rewrites the segment's text by fixed levels, since providers take no weights of trust.",
		"The context is assembled in `model/counterfactual` and not in a folder of its own; variants run in front of the provider (`model/guard`) or after the fact (`ccr`), not in an orchestrator of MCP.",
	}},
}

// A departure is a difference from the RFC's letter.
type departure struct{ clause, letter, ours, why string }

// departures lists every one that the design decided on.
var departures = []departure{
	{"3", "no Markdown", "links, images and reference definitions with a destination and closed fences are refused; emphasis, headings, lists and code spans are not", "4.6 keeps emphasis and backticks, so clause 3 cannot mean them; a footnote [1] is no link"},
	{"3", "no JSON-encoded sub-structures", "objects and arrays of 16 bytes or more that hold members, strings or literals", "[1], [0, 1) and {a, b} are prose"},
	{"3", "no encoded payloads", "runs of 24 or more characters of base64, base32 or hex that decode to text, 8 or more percent or \\u escapes that do, data: URIs", "hashes, keys and sequences are encoded too, and are what evidence is made of"},
	{"3", "fields are type-checked", "as they are, in NFKC, and in NFKC without hidden characters", "a later reader may see any of the three"},
	{"3", "HTML tags", "complete tags with the name of an HTML, SVG or MathML element, comments and declarations are refused; any other tag is stripped by 4.6", "a < b and c > d is prose"},
	{"3", "verdict: VERIFIED, SUPPORTED, DISPUTED, FALSE, \u2026", "also QUALIFIED and UNVERIFIED, and what a registry file adds; VERIFIED and SUPPORTED are one side", "RFC-FACTCHECK has them; the list of the RFC is open"},
	{"3", "claim_hash: bytes32", "also spelled sha256: and 64 hex digits", "RFC-FACTCHECK spells it so; it is recomputed either way"},
	{"3", "mistyped attestations are rejected", "dangerously_ingest_untyped lets old records through to 4.6; sanitation_version is then none", "a federation may have to serve what it holds already"},
	{"4", "the pipeline runs once", "the same order again until nothing changes", "e, U+200B, U+0301 is not in NFKC after one run, and <<b>script> is not free of tags"},
	{"4", "reordering is non-conformant", "what 4.4 removes for what it is goes before 4.2 as well; the mandated order follows unchanged", "a hidden character must not decide what 4.2 composes; no vector of the corpus tells the two apart"},
	{"4.1", "cut at the cap, and \u2026 appended", "the marker is part of the cap; the cut backs off to a normalisation boundary; the cap holds for the final text too", "a cap that the marker exceeds would not hold; 1,998 bytes of U+FDFA become 21,978"},
	{"4.1", "\u2026", "the reader gets ...", "4.2 follows 4.1 and makes it so"},
	{"4.1", "at most 5 quotes", "the rest is dropped and recorded as {field: evidence, kept, dropped}; more than 64 are refused", "clause 6: nothing is dropped in silence"},
	{"4.1", "caps for three fields", "a claim has that of a rationale, a title that of a quote", "they are a stranger's text too"},
	{"4.2", "NFKC", "tables pinned to Unicode 15.0.0; without the stream-safe U+034F; what changes a number is in _meta.nfkc_lossy", "a hash must not change with a compiler; 10 to the 6th becomes 106"},
	{"4.3", "confusables.txt, latest", "15.0.0", "a replacement must be the same on every replica and in every year"},
	{"4.3", "any character with a mapping to another ASCII character", "only characters that are not ASCII themselves, and only mappings to exactly one ASCII character", "the data also map 0, 1, I and m, and would make IO of 10"},
	{"4.3", "every such character", "scope literal does; scope mixed replaces only where a word pretends, and flags the rest; it never makes syntax", "literal alters 99 % of Russian and Greek words, against clause 9's negative tests"},
	{"4.3", "reject", "the whole attestation, at ingestion", "a refused text must not be stored"},
	{"4.4", "155 code points", "every hidden character: default ignorables, controls, fillers, noncharacters; dangerously_rfc_set_only limits it", "the list misses 4,019 of 4,174 default ignorable code points, each of which can carry a payload"},
	{"4.4", "stripped", "line and paragraph separators and other line breaks become line feeds, the Ogham space a space", "words must not run together"},
	{"4.4", "nothing of marks", "more than 8 non-starters on one base are dropped and recorded", "they are a hidden channel, and hide what stands around them"},
	{"4.4", "stripping is silent", "it is always recorded", "clause 6 says so"},
	{"4.5", "validated against RFC 3986", "also: a public host in its usual spelling, no user information, decoded up to four times without a hidden character, control or new delimiter; identifiers by their own syntax", "the grammar alone lets https://good@evil and %25E2%2580%25AE pass"},
	{"4.5", "evidence and cited works", "validator_did too", "it is shown as well"},
	{"4.5", "[hostname] \u2192 URI", "[did:method], [urn:nid] or [arxiv] where there is no host", "the clause allows such URIs"},
	{"4.5", "rejected", "the attestation is refused at ingestion", "an entry without its source is another statement"},
	{"4.6", "a robust HTML parser", "one linear scan with a stack, held against a parser in tests; an unterminated < loses only itself; no element switches to raw text", "strip passes recombine, and a parser drops what follows an open tag"},
	{"4.6", "[text](url)", "also images, reference definitions and, but for their brackets, autolinks; titles go", "they are as clickable"},
	{"4.6", "entities are not mentioned", "not decoded into markup; a reference to a hidden character is removed", "a reader that decodes it gets the character"},
	{"5.1", "the example's nested frame has no warning", "every frame has it", "5.2 requires it"},
	{"5.1", "query: echoed", "sanitised like any text", "it may be copied from a stranger's page"},
	{"5.1", "the members of _meta", "also unicode_version, profile, nfkc_lossy, normalised, noted, deviations", "a record that says less cannot be replayed"},
	{"5.1", "sanitation_version", "none while a loosening is on", "8.1 asks for the truth"},
	{"5.1", "attestations that match", "those on one claim, or on the group that was asked for, that count under the profile; other claims stand in _meta.other_claims", "verdict_summary and attestations stand side by side: a reader of both must not read a verdict on another claim"},
	{"5.1", "consensus_domain", "the profile's identifier where it believes several domains", "there is no one domain then"},
	{"5.1", "the members of _meta", "also claim, other_claims, provenance, withheld, cut, freshness, explanation (docs/spec/grounding.md)", "nothing is left out without saying so"},
	{"5.2", "rationale, qualifications, quotes", "claims are framed as well; titles of cited works are left out", "they are a stranger's text too"},
	{"6", "recorded in _meta", "positions and classes, never the characters; at most 256 entries a field, of which the last covers the rest", "_meta stands outside of the frame"},
	{"7", "homoglyph replacement and strip", "with 4.3's restriction to one ASCII character and 4.4's literal list, whatever the operator configures", "a hash must not depend on a setting"},
	{"7", "duplicates by hash", "also by a deduplication key: fix point, all hidden characters, skeleton; what matches by skeleton alone is flagged", "the literal steps tell apart some texts that look the same: an accent that joins its letter only once a joiner is gone"},
	{"7", "nothing of renewals", "the same validator's later issue of the same statement takes the earlier one's place", "an attestation expires"},
	{"9", "the Foundation's corpus", "our own, package corpus: MUST is the RFC's letter, SHOULD what we add", "the Foundation's is not public"},
}
