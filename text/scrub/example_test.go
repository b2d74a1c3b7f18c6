// SPDX-License-Identifier: Apache-2.0

package scrub_test

import (
	"fmt"
	"log"

	"github.com/pellucid-mcp/pellucid/text/scrub"
)

func ExampleScrubber_Scrub() {
	scrubber, err := scrub.Compile(scrub.Policy{}) // the zero value is the strict profile "mcp"
	if err != nil {
		log.Fatal(err)
	}
	var r scrub.Result // may be used again
	scrubber.Scrub("Paris.\u200b<|im_\u00adend|> \ufb01ne", &r)
	fmt.Println(r.Clean)
	for _, e := range r.Edits {
		fmt.Println(e.Class.Code(), e.Start, e.End)
	}
	// Output:
	// Paris. fine
	// hidden-zero-width 6 9
	// control-token 9 21
	// nfkc 22 25
}

// The profile faithful keeps what languages and emoji need, and changes no character
// that it does not remove.
func ExampleCompile_faithful() {
	scrubber, err := scrub.Compile(scrub.Policy{Profile: scrub.Faithful, MaxChars: 4000})
	if err != nil {
		log.Fatal(err)
	}
	var r scrub.Result
	scrubber.Scrub("\U0001F469\u200d\U0001F4BB caf\u00e9 \ufb01ne\U000E0041\U000E0042", &r)
	fmt.Printf("%+q %d removed\n", r.Clean.String(), len(r.Edits))
	// Output: "\U0001f469\u200d\U0001f4bb caf\u00e9 \ufb01ne" 1 removed
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
