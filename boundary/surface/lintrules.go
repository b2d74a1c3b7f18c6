// SPDX-License-Identifier: Apache-2.0

package surface

// A Family is a kind of wording that manipulates an agent.
type Family string

// The families.
const (
	override    Family = "instruction-override"
	pretence    Family = "pretended-system-text"
	concealment Family = "concealment"
	exfiltrate  Family = "exfiltration"
	hijack      Family = "tool-chain-hijacking"
	authority   Family = "authority"
)

// sets are groups of words that a pattern names with a leading "@". All are in lower
// case; an apostrophe is left out.
var sets = map[string]string{
	"drop":     "ignore disregard forget override overrides bypass bypasses disable disables disregarding ignoring bypassing overriding disabling",
	"prior":    "previous prior above earlier preceding existing initial original system safety security all any other your every content",
	"rule":     "instruction instructions rule rules guideline guidelines restriction restrictions policy policies prompt prompts directive directives safeguard safeguards filter filters constraint constraints safety",
	"not":      "not dont never without",
	"tell":     "mention tell inform notify reveal disclose alert explain",
	"person":   "user users human person anyone operator owner",
	"unseen":   "detection detected notice noticed alerts suspicion consent",
	"secretly": "secretly silently covertly covert discreetly stealthily stealthy stealth quietly surreptitiously",
	"act":      "read fetch open access call invoke send execute run include extract load pass",
	"take":     "send sends sending post forward upload transmit transfer leak exfiltrate extract extracting harvest harvesting steal include export exporting sharing capture capturing collect",
	"hand":     "pass send include put append attach provide give supply",
	"secret":   "secret secrets credential credentials password passwords token tokens key keys ssh env cookie cookies conversation history confidential",
	"must":     "must always first need required should",
	"when":     "before when whenever after prior if",
	"tool":     "tool tools function server",
	"great":    "elevated root unrestricted full admin administrator emergency maximum",
	"might":    "access privileges privilege authority mode permissions system trust",
	"poison":   "poison hijack exfiltrate exfiltration malicious phishing sabotage malware backdoor jailbreak",
	"hide":     "hidden secret concealed undetected invisible",
}

// A rule is a pattern: words in order, within a sentence, with a few others between.
// A word is spelled, or "@" and a set; before it may stand a number: how many other
// words may come between it and the one before. "<" before a word means that it opens
// a bracket, a line or what a colon announces, ">" behind it that it is a tag's name,
// ":" that a colon or closing bracket follows; "^" before all that: in capitals.
type rule struct {
	family  Family
	score   int
	pattern string
}

// threshold is the score at which a text is worth a warning. A quoted or illustrated
// phrase counts a fifth.
const threshold = 10

var rules = []rule{
	{override, 10, "@drop 2 previous 2 @rule"},
	{override, 10, "@drop 2 prior 2 @rule"},
	{override, 10, "@drop 1 @prior 2 @rule"},
	{override, 6, "@drop 3 @rule"},
	{override, 6, "override 2 instructions"},
	{override, 10, "reveal 2 system prompt"},
	{override, 6, "you are now"},
	{override, 6, "your new task"},
	{override, 10, "@drop 2 @prior 1 and"},
	{override, 10, "@drop 1 what 2 told"},
	{override, 6, "instead 4 original task"},
	{override, 6, "new instructions:"},
	{override, 6, "from now on 1 you"},

	{pretence, 10, "^<hidden:"},
	{pretence, 10, "<hidden>"},
	{pretence, 10, "<important>"},
	{pretence, 10, "<system>"},
	{pretence, 6, "instruction:"},
	{pretence, 10, "^<system:"},
	{pretence, 10, "<system 0 override"},
	{pretence, 10, "<system 0 note:"},
	{pretence, 10, "<system 0 message:"},
	{pretence, 10, "<hidden 0 instruction"},
	{pretence, 10, "<secret>"},
	{pretence, 10, "<instructions>"},
	{pretence, 6, "important message 3 system"},
	{pretence, 6, "^<developer:"},
	{pretence, 6, "^<assistant:"},
	{pretence, 6, "@great 0 directive:"},
	{pretence, 6, "<emergency 0 directive:"},
	{pretence, 6, "<role 0 directive:"},
	{pretence, 6, "<configuration 0 directive:"},
	{pretence, 10, "^<instruction:"},

	{concealment, 10, "@not 1 @tell 3 @person"},
	{concealment, 10, "@not 1 mention that you"},
	{concealment, 10, "@not 1 @tell 1 that youre"},
	{concealment, 10, "without 1 detection"},
	{concealment, 10, "avoiding detection"},
	{concealment, 10, "no detection"},
	{concealment, 10, "without 2 triggering 2 alerts"},
	{concealment, 10, "without 1 triggering 2 security"},
	{concealment, 10, "without 3 @person 1 knowing"},
	{concealment, 10, "without 3 @person 1 knowledge"},
	{concealment, 10, "remain 0 concealed"},
	{concealment, 10, "@secretly 1 @take"},
	{concealment, 6, "@secretly 1 elevate"},
	{concealment, 10, "@secretly 1 modifying"},
	{concealment, 6, "discreetly"},
	{concealment, 10, "present it as"},
	{concealment, 6, "look like normal"},

	{exfiltrate, 10, "exfiltrate 3 data"},
	{exfiltrate, 10, "harvest 2 @secret"},
	{exfiltrate, 6, "@take 4 @secret 4 http"},
	{exfiltrate, 6, "@take 4 conversation 1 history"},
	{exfiltrate, 10, "extract all credentials"},
	{exfiltrate, 6, "include 1 @secret 2 in your response"},
	{exfiltrate, 6, "include 2 in your response"},
	{exfiltrate, 6, "@act 3 confidential"},
	{exfiltrate, 6, "@act 4 ssh"},
	{exfiltrate, 10, "@act 4 ssh 5 @hand 3 as"},
	{exfiltrate, 10, "@act 4 env 5 @hand 3 as"},
	{exfiltrate, 10, "@act 4 credentials 5 @hand 3 as"},
	{exfiltrate, 6, "read 4 mcp json"},
	{exfiltrate, 6, "pass 1 content 1 as"},
	{exfiltrate, 6, "pass 1 contents 1 as"},
	{exfiltrate, 10, "call 1 fetch 1 with url"},
	{exfiltrate, 6, "unauthorized access"},

	{hijack, 10, "@when 3 tool 3 must first @act"},
	{hijack, 6, "you must first @act"},
	{hijack, 6, "do the following first"},
	{hijack, 6, "must 1 first @act"},
	{hijack, 6, "before using any other tool"},
	{hijack, 10, "@not 2 use 2 other tools"},
	{hijack, 6, "instead of 3 other tools"},
	{hijack, 6, "change the recipient"},
	{hijack, 6, "otherwise 2 tool 2 not work"},
	{hijack, 6, "redirect 1 to malicious"},

	{authority, 10, "act as: 3 @great"},
	{authority, 10, "act as: 3 system"},
	{authority, 6, "@great 0 @might"},
	{authority, 10, "jailbreak 0 mode"},
	{authority, 6, "disable 2 security"},
	{authority, 10, "disable 1 all 2 @rule"},
	{authority, 10, "trust all 3 without validation"},
	{authority, 6, "without validation"},
	{authority, 10, "without proper authorization"},
	{authority, 6, "system_prompt 2 override"},
	{authority, 6, "override_safety"},
}

// discounts are words that, shortly before a phrase, make it an example or the thing
// that a tool is against.
const discounts = "example examples eg ie such like detect detects detecting detection prevent prevents preventing against block blocks blocking avoid stop stops protect protects identify identifies flag flags scan scans scanning called named titled says saying"
