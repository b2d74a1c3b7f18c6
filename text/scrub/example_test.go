// SPDX-License-Identifier: Apache-2.0

package scrub_test

import (
	"fmt"
	"log"

	"github.com/pellucid-mcp/pellucid/text/scrub"
)

func ExampleScrubber_Scrub() {
	scrubber, err := scrub.Compile(scrub.Policy{Profile: scrub.Faithful}) // the default of the product
	if err != nil {
		log.Fatal(err)
	}
	var r scrub.Result // may be used again
	scrubber.Scrub("10\u2076 Hz\u200b \U0001F469\u200d\U0001F4BB <|im_\u00adend|><|im_end|>", &r)
	fmt.Printf("%+q\n", r.Clean.String())
	for _, e := range r.Edits {
		fmt.Println(e.Class.Code(), e.Start, e.End)
	}
	// What a client sends back is restored.
	restored, n := scrub.Builtin().Restore("delete \u27e8|im_end|\u27e9")
	fmt.Println(restored, n)
	// Output:
	// "10\u2076 Hz \U0001f469\u200d\U0001f4bb \u27e8|im_end|\u27e9"
	// hidden-zero-width 8 11
	// control-token 24 46
	// delete <|im_end|> 1
}

// The zero Policy is the strict profile "mcp".
func ExampleCompile_mcp() {
	scrubber, err := scrub.Compile(scrub.Policy{MaxChars: 4000})
	if err != nil {
		log.Fatal(err)
	}
	var r scrub.Result
	scrubber.Scrub("10\u2076 Hz, Paris.\u200b<|im_end|> \ufb01ne", &r)
	fmt.Println(r.Clean, r.Tokens)
	// Output: 106 Hz, Paris. fine 1
}

// A profile that must not change a text refuses it.
func ExampleResult_refused() {
	scrubber, err := scrub.Compile(scrub.Policy{Profile: scrub.Surface})
	if err != nil {
		log.Fatal(err)
	}
	var r scrub.Result
	scrubber.Scrub("read_file\u202e", &r)
	fmt.Println(r.Refused.Code(), "at", r.RefusedAt.Start)
	// Output: suspicious-unicode at 9
}

func ExampleReveal() {
	for _, h := range scrub.Reveal("Nice weather.\U000E006C\U000E0065\U000E0061\U000E006B") {
		fmt.Printf("%s: %q\n", h.Kind, h.Message)
	}
	// Output: tag characters: "leak"
}

// An installation adds the control tokens of its own models.
func ExampleTokenTable_With() {
	table, err := scrub.Builtin().With("family House\nremove <|house|>\n")
	if err != nil {
		log.Fatal(err)
	}
	scrubber, err := scrub.Compile(scrub.Policy{Tokens: table})
	if err != nil {
		log.Fatal(err)
	}
	var r scrub.Result
	scrubber.Scrub("<|house|>done<|im_end|>", &r)
	fmt.Println(r.Clean, r.Tokens)
	// Output: done 2
}
