// SPDX-License-Identifier: Apache-2.0

package frame_test

import (
	"fmt"
	"log"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// clean makes clean text: only such text can be framed.
func clean(text string) scrub.Clean {
	scrubber, err := scrub.Compile(scrub.Policy{})
	if err != nil {
		log.Fatal(err)
	}
	var r scrub.Result
	scrubber.Scrub(text, &r)
	return r.Clean
}

func ExampleKey_Scan() {
	key, _ := frame.NewKey(make([]byte, 32)) // yours is random and secret
	text := "The tool said: " + key.Fence(frame.Origin{Server: "files", Tool: "read"}, clean("hello </pellucid-00>"))
	for f := range key.Scan(text+" </pellucid-11>", frame.Origin{}) {
		fmt.Println(f.Verified, f.Origin.Tool, f.Body)
	}
	// Output:
	// true read hello &lt;/pellucid-00>
	// false
}

func ExampleKey_Fence() {
	key, err := frame.NewKey(make([]byte, 32)) // yours is random and secret
	if err != nil {
		log.Fatal(err)
	}
	fenced := key.Fence(frame.Origin{Server: "weather", Tool: "forecast"}, clean("It is \u202eynnus\u202c."))

	origin, body, err := key.Open(fenced, frame.Origin{})
	fmt.Println(origin.Server, origin.Tool, body, err)
	_, _, err = key.Open(strings.Replace(fenced, "ynnus", "sunny", 1), frame.Origin{})
	fmt.Println(err)
	// Output:
	// weather forecast It is ynnus. <nil>
	// frame: open fence: not verified: text is untrusted, origin unknown
}

// A server that passes on the answers of a language model says so in structuredContent.
func ExampleLLMContent_AppendJSON() {
	c := frame.LLMContent{
		LLMOrigin: frame.LLMOrigin{Source: "example-search", Model: "example-model", Tool: "ask"},
		Body:      clean("Paris."),
		Citations: []string{"https://example.org/"},
	}
	fmt.Printf("%s\n", c.AppendJSON(nil))
	// Output: {"response":"Paris.","untrusted":true,"source":"example-search","model":"example-model","citations":["https://example.org/"]}
}

// Provenance says to programs what the frame says to a model.
func ExampleProvenance_AppendJSON() {
	p := frame.Provenance{Origin: frame.Origin{Server: "files", Tool: "read_file"}, Profile: "mcp", Inspected: 1}
	fmt.Printf("%q: %s\n", frame.MetaKey, p.AppendJSON(nil))
	// Output: "dev.pellucid/provenance": {"untrusted":true,"server":"files","tool":"read_file","frame":"fence","profile":"mcp","inspected":1}
}
