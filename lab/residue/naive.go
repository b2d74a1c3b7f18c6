// SPDX-License-Identifier: Apache-2.0

package residue

import (
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// The checks of this file are written down a second time, from the documents
// and by hand. They must never read the scrubber's tables: a hole in those
// would then be a hole in what looks for holes.

// hidden lists every code point that has to be gone from a text for a model.
var hidden = [][2]rune{
	{0x061C, 0x061C}, {0x200E, 0x200F}, {0x202A, 0x202E}, {0x2066, 0x2069}, // bidi
	{0x200B, 0x200D}, {0x2060, 0x2060}, {0xFEFF, 0xFEFF}, // zero-width
	{0x2061, 0x2065}, {0x206A, 0x206F}, // invisible operators
	{0xFE00, 0xFE0F}, {0xE0100, 0xE01EF}, {0x180B, 0x180F}, // variation selectors
	{0xE0000, 0xE0FFF},                 // tags
	{0x034F, 0x034F}, {0x115F, 0x1160}, // fillers
	{0x17B4, 0x17B5}, {0x3164, 0x3164}, {0xFFA0, 0xFFA0}, {0x00AD, 0x00AD},
	{0xFFF0, 0xFFFB},                                           // annotation
	{0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0x13430, 0x1343F}, // format
	{0x0000, 0x0008}, {0x000B, 0x001F}, {0x007F, 0x009F}, // controls
	{0x2028, 0x2029}, {0x1680, 0x1680}, // separators
	{0xFDD0, 0xFDEF}, // noncharacters, with the last two of each plane
}

// isHidden reports whether r is a code point that a model must not get to read
// under the mcp profile.
func isHidden(r rune) bool {
	return r&0xFFFE == 0xFFFE || slices.ContainsFunc(hidden, func(x [2]rune) bool { return x[0] <= r && r <= x[1] })
}

// hasHidden reports whether a hidden code point is left in s.
func hasHidden(s string) bool { return strings.ContainsFunc(s, isHidden) }

// tokens are control tokens as the models' own tokenizers spell them: they know no
// other case. U+2581 is how one family writes a space. What honest text also spells
// ("[INST]", "<s>", "<system>" and the like) is not among them: where it stands
// plainly it is kept and noted.
var tokens = []string{
	"<|im_start|>", "<|im_end|>", "<|im_sep|>", "<|endoftext|>", "<|endofprompt|>", // ChatML, GPT
	"[/INST]", "<<SYS>>", "<</SYS>>", // Llama 2, Mistral
	"<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|eom_id|>", "<|python_tag|>", // Llama 3
	"<|header_start|>", "<|header_end|>", "<|eot|>", "<|eom|>", // Llama 4
	"[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CALLS]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", // Mistral
	"<start_of_turn>", "<end_of_turn>", "<|turn>", "<turn|>", "<|channel>", "<|tool_call>", "<tool_call|>", // Gemma
	"]~!b[", "]~b]", "[e~[", "<minimax:tool_call>", "<beginning_of_sentence>", // MiniMax
	"<|DSML|", "[|system|]", "[|endofturn|]", "<seed:bos>", "<seed:eos>", "<arg_key>", "<SPECIAL_10>", "<start_function_call>",
	"<|system|>", "<|user|>", "<|assistant|>", "<|end|>", "<|tool|>", // Phi
	"<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|vision_start|>", "<|vision_end|>", // Qwen
	"<|begin\u2581of\u2581sentence|>", "<|end\u2581of\u2581sentence|>", // DeepSeek, after NFKC
	"<|tool\u2581calls\u2581begin|>", "<|tool\u2581calls\u2581end|>", "<|tool\u2581outputs\u2581begin|>", "<|tool\u2581outputs\u2581end|>",
	"<|START_OF_TURN_TOKEN|>", "<|END_OF_TURN_TOKEN|>", "<|SYSTEM_TOKEN|>", "<|USER_TOKEN|>", "<|CHATBOT_TOKEN|>", // Command-R
	"<|start_of_role|>", "<|end_of_role|>", // Granite
	"<think>", "</think>", "<|im_user|>", "<|im_assistant|>", "<|im_system|>", "<|end_of_turn|>", "<unused0>",
	"<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<function_results>", "</function_results>",
	"</system>", "### Instruction:", "### System:", // prompts rather than tokens, and imitated as such
	"<|start|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|return|>", "<|call|>", // harmony
}

// hasToken reports whether a control token stands in s: as it is, or once
// compatibility forms are folded and hidden code points are gone.
func hasToken(s string) bool {
	view := strings.Map(func(r rune) rune {
		if isHidden(r) {
			return -1
		}
		return r
	}, norm.NFKC.String(s))
	return slices.ContainsFunc(tokens, func(t string) bool { return strings.Contains(view, t) })
}

// channels are the alphabets in which text is smuggled, with the least run of
// one that is no accident: a letter of a tag message is one code point, an
// byte in variation selectors is one, in zero-width bits it is eight.
var channels = []struct {
	least    int
	alphabet [][2]rune
}{
	{4, [][2]rune{{0xE0020, 0xE007F}}},
	{4, [][2]rune{{0xFE00, 0xFE0F}, {0xE0100, 0xE01EF}}},
	{8, [][2]rune{{0x200B, 0x200F}, {0x2060, 0x2064}, {0xFEFF, 0xFEFF}, {0x180E, 0x180E}, {0x061C, 0x061C}}},
}

// flags are the only tag sequences with a picture of their own.
var flags = strings.NewReplacer(
	"\U0001F3F4\U000E0067\U000E0062\U000E0065\U000E006E\U000E0067\U000E007F", "",
	"\U0001F3F4\U000E0067\U000E0062\U000E0073\U000E0063\U000E0074\U000E007F", "",
	"\U0001F3F4\U000E0067\U000E0062\U000E0077\U000E006C\U000E0073\U000E007F", "",
)

// hasMessage reports whether s holds an unbroken run of hidden code points
// that is long enough to say something.
func hasMessage(s string) bool {
	s = flags.Replace(s)
	for _, ch := range channels {
		run := 0
		for _, r := range s {
			if !slices.ContainsFunc(ch.alphabet, func(x [2]rune) bool { return x[0] <= r && r <= x[1] }) {
				run = 0
			} else if run++; run >= ch.least {
				return true
			}
		}
	}
	return false
}
