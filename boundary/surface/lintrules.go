// SPDX-License-Identifier: Apache-2.0

package surface

// A Family is a kind of wording that manipulates an agent.
type Family string

// The families.
const (
	Override    Family = "instruction-override"
	Pretence    Family = "pretended-system-text"
	Concealment Family = "concealment"
	Exfiltrate  Family = "exfiltration"
	Hijack      Family = "tool-chain-hijacking"
	Authority   Family = "authority"
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

// Threshold is the score at which a text is worth a warning. A quoted or illustrated
// phrase counts a fifth.
const Threshold = 10

var rules = []rule{
	{Override, 10, "@drop 2 previous 2 @rule"},
	{Override, 10, "@drop 2 prior 2 @rule"},
	{Override, 10, "@drop 1 @prior 2 @rule"},
	{Override, 6, "@drop 3 @rule"},
	{Override, 6, "override 2 instructions"},
	{Override, 10, "reveal 2 system prompt"},
	{Override, 6, "you are now"},
	{Override, 6, "your new task"},
	{Override, 10, "@drop 2 @prior 1 and"},
	{Override, 10, "@drop 1 what 2 told"},
	{Override, 6, "instead 4 original task"},
	{Override, 6, "new instructions:"},
	{Override, 6, "from now on 1 you"},

	{Pretence, 10, "^<hidden:"},
	{Pretence, 10, "<hidden>"},
	{Pretence, 10, "<important>"},
	{Pretence, 10, "<system>"},
	{Pretence, 6, "instruction:"},
	{Pretence, 10, "^<system:"},
	{Pretence, 10, "<system 0 override"},
	{Pretence, 10, "<system 0 note:"},
	{Pretence, 10, "<system 0 message:"},
	{Pretence, 10, "<hidden 0 instruction"},
	{Pretence, 10, "<secret>"},
	{Pretence, 10, "<instructions>"},
	{Pretence, 6, "important message 3 system"},
	{Pretence, 6, "^<developer:"},
	{Pretence, 6, "^<assistant:"},
	{Pretence, 6, "@great 0 directive:"},
	{Pretence, 6, "<emergency 0 directive:"},
	{Pretence, 6, "<role 0 directive:"},
	{Pretence, 6, "<configuration 0 directive:"},
	{Pretence, 10, "^<instruction:"},

	{Concealment, 10, "@not 1 @tell 2 @person"},
	{Concealment, 10, "@not 1 mention that you"},
	{Concealment, 10, "@not 1 @tell 1 that youre"},
	{Concealment, 10, "without 1 detection"},
	{Concealment, 10, "avoiding detection"},
	{Concealment, 10, "no detection"},
	{Concealment, 10, "without 2 triggering 2 alerts"},
	{Concealment, 10, "without 1 triggering 2 security"},
	{Concealment, 10, "without 3 @person 1 knowing"},
	{Concealment, 10, "without 3 @person 1 knowledge"},
	{Concealment, 10, "remain 0 concealed"},
	{Concealment, 10, "@secretly 1 @take"},
	{Concealment, 6, "@secretly 1 elevate"},
	{Concealment, 10, "@secretly 1 modifying"},
	{Concealment, 6, "discreetly"},
	{Concealment, 10, "present it as"},
	{Concealment, 6, "look like normal"},

	{Exfiltrate, 10, "exfiltrate 3 data"},
	{Exfiltrate, 10, "harvest 2 @secret"},
	{Exfiltrate, 6, "@take 4 @secret 4 http"},
	{Exfiltrate, 6, "@take 4 conversation 1 history"},
	{Exfiltrate, 10, "extract all credentials"},
	{Exfiltrate, 6, "include 1 @secret 2 in your response"},
	{Exfiltrate, 6, "include 2 in your response"},
	{Exfiltrate, 6, "@act 3 confidential"},
	{Exfiltrate, 6, "@act 4 ssh"},
	{Exfiltrate, 10, "@act 4 ssh 5 @hand 3 as"},
	{Exfiltrate, 10, "@act 4 env 5 @hand 3 as"},
	{Exfiltrate, 10, "@act 4 credentials 5 @hand 3 as"},
	{Exfiltrate, 6, "read 4 mcp json"},
	{Exfiltrate, 6, "pass 1 content 1 as"},
	{Exfiltrate, 6, "pass 1 contents 1 as"},
	{Exfiltrate, 10, "call 1 fetch 1 with url"},
	{Exfiltrate, 6, "unauthorized access"},

	{Hijack, 10, "@when 3 tool 3 must first @act"},
	{Hijack, 6, "you must first @act"},
	{Hijack, 6, "do the following first"},
	{Hijack, 6, "must 1 first @act"},
	{Hijack, 6, "before using any other tool"},
	{Hijack, 10, "@not 2 use 2 other tools"},
	{Hijack, 6, "instead of 3 other tools"},
	{Hijack, 6, "change the recipient"},
	{Hijack, 6, "otherwise 2 tool 2 not work"},
	{Hijack, 6, "redirect 1 to malicious"},

	{Authority, 10, "act as: 3 @great"},
	{Authority, 10, "act as: 3 system"},
	{Authority, 6, "@great 0 @might"},
	{Authority, 10, "jailbreak 0 mode"},
	{Authority, 6, "disable 2 security"},
	{Authority, 10, "disable 1 all 2 @rule"},
	{Authority, 10, "trust all 3 without validation"},
	{Authority, 6, "without validation"},
	{Authority, 10, "without proper authorization"},
	{Authority, 6, "system_prompt 2 override"},
	{Authority, 6, "override_safety"},
}

// discounts are words that, shortly before a phrase, make it an example or the thing
// that a tool is against.
const discounts = "example examples eg ie such like detect detects detecting detection prevent prevents preventing against block blocks blocking avoid stop stops protect protects identify identifies flag flags scan scans scanning called named titled says saying"
