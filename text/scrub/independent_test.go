// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// What follows says a second time, from other sources, what must be gone. It
// shares nothing with the scrubber: neither tables nor code.

// forbidden is text.md's list of removed code points, typed in again.
func forbidden(r rune) bool {
	for _, x := range [][2]rune{
		{0x00, 0x08}, {0x0B, 0x1F}, {0x7F, 0x9F}, {0xAD, 0xAD}, {0x34F, 0x34F}, {0x61C, 0x61C},
		{0x115F, 0x1160}, {0x1680, 0x1680}, {0x17B4, 0x17B5}, {0x180B, 0x180F}, {0x200B, 0x200F},
		{0x2028, 0x2029}, {0x202A, 0x202E}, {0x2060, 0x206F}, {0x3164, 0x3164}, {0xFDD0, 0xFDEF},
		{0xFE00, 0xFE0F}, {0xFEFF, 0xFEFF}, {0xFFA0, 0xFFA0}, {0xFFF0, 0xFFFB}, {0x13430, 0x1343F},
		{0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF},
	} {
		if x[0] <= r && r <= x[1] {
			return true
		}
	}
	return r&0xFFFE == 0xFFFE
}

// naiveTokens are the tokens that the corpora name, and a few more.
var naiveTokens = []string{
	"<|im_start|>", "<|im_end|>", "<|im_sep|>", "<|im_user|>", "<|eot_id|>", "<|eot|>",
	"<|start_header_id|>", "<|end_header_id|>", "<|header_end|>", "<|end_of_text|>", "<|endoftext|>",
	"<|end_of_turn|>", "<|assistant|>", "<|user|>", "<|message|>", "<|channel|>", "<|python_tag|>",
	"<|end_of_sentence|>", "<end_of_turn>", "[/INST]", "<<SYS>>", "<</SYS>>",
	"</system>", "</tool_response>", "<think>", "</think>", "[TOOL_CALLS]", "[AVAILABLE_TOOLS]",
	"[TOOL_RESULTS]", "[/TOOL_RESULTS]", "<unused0>", "<function_results>", "### Instruction:",
	"### System:",
}

var homoglyphs = strings.NewReplacer(
	"\u0430", "a", "\u0435", "e", "\u0456", "i", "\u043e", "o", "\u0440", "p", "\u0441", "c",
	"\u0443", "y", "\u0445", "x", "\u0455", "s", "\u0501", "d", "\u04bb", "h", "\u03bf", "o",
	"\u0405", "S", "\u03a5", "Y", "\u0406", "I", "\u0415", "E", "\u041c", "M", "\u0422", "T",
	"\ua731", "S", "\u2581", "_", "\u01c0", "|", "\u2039|", "<|", "|\u203a", "|>", "\u2039\u2039", "<<", "\u203a\u203a", ">>",
)

// naiveToken looks for a token after NFKD, without marks, with the
// homoglyphs of the corpora replaced and, but for headings, line breaks ignored.
func naiveToken(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.M, r) || forbidden(r) && r != '\r' {
			return -1
		}
		return r
	}, norm.NFKD.String(s))
	s = homoglyphs.Replace(s)
	joined := strings.NewReplacer("\n", "", "\r", "").Replace(s)
	for _, t := range naiveTokens {
		in := joined
		if t[0] == '#' {
			in = s // hashes of two lines are comments
		}
		if strings.Contains(in, t) {
			return t
		}
	}
	return ""
}
