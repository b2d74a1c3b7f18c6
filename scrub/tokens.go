package scrub

import "slices"

// A TokenKind says how a control token is delimited, and so how it is found.
type TokenKind uint8

const (
	Angle   TokenKind = iota // <name>, also <|name|>
	Bracket                  // [name]
	Heading                  // ### name:
	Line                     // name: at the beginning of a line
	Generic                  // any <|name|>: letters, digits, _ - . / and U+2581
)

// An Action says what mcp and faithful do with a token.
type Action uint8

const (
	Remove    Action = iota // both remove it
	RemoveMCP               // mcp removes it, faithful counts it
)

// A Token is one control token of a model family's chat template. Text is
// compared in the view, without regard to ASCII case unless Exact.
type Token struct {
	Family string
	Text   string
	Kind   TokenKind
	Action Action
	// Exact: only this case counts, or any case that is spelled with something
	// else than these ASCII characters, which no honest text does.
	Exact bool
	Why   string // for an exception
}

// Tokens returns the table. spec: scrub/4.3
func Tokens() []Token { return slices.Clone(tokens) }

const (
	whyHTML    = "<S> is a type parameter in half of all Rust; the tokenizers know <s> only"
	whyHeading = "a heading of interface documentation"
	whyLine    = "in plain lower case or capitalised it is a YAML key or a label, which is left"
	whyChatLog = "a chat log"
)

var tokens = []Token{
	// Every <|name|>, so that a family's new tokens are known before they exist.
	{Family: "any", Text: "<|name|>", Kind: Generic},

	{Family: "ChatML", Text: "<|im_start|>"},
	{Family: "ChatML", Text: "<|im_end|>"},
	{Family: "ChatML", Text: "<|im_sep|>"},
	{Family: "GPT", Text: "<|endoftext|>"},
	{Family: "GPT", Text: "<|endofprompt|>"},
	{Family: "GPT", Text: "<|fim_prefix|>"},
	{Family: "GPT", Text: "<|fim_middle|>"},
	{Family: "GPT", Text: "<|fim_suffix|>"},
	{Family: "GPT-OSS", Text: "<|start|>"},
	{Family: "GPT-OSS", Text: "<|end|>"},
	{Family: "GPT-OSS", Text: "<|message|>"},
	{Family: "GPT-OSS", Text: "<|channel|>"},
	{Family: "GPT-OSS", Text: "<|constrain|>"},
	{Family: "GPT-OSS", Text: "<|call|>"},
	{Family: "GPT-OSS", Text: "<|return|>"},

	{Family: "Llama 2", Text: "[INST]", Kind: Bracket},
	{Family: "Llama 2", Text: "[/INST]", Kind: Bracket},
	{Family: "Llama 2", Text: "<<SYS>>"},
	{Family: "Llama 2", Text: "<</SYS>>"},
	{Family: "Llama 2", Text: "<s>", Exact: true, Why: whyHTML},
	{Family: "Llama 2", Text: "</s>", Exact: true, Why: whyHTML},
	{Family: "Llama 2", Text: "<unk>"},
	{Family: "Llama 3", Text: "<|begin_of_text|>"},
	{Family: "Llama 3", Text: "<|end_of_text|>"},
	{Family: "Llama 3", Text: "<|start_header_id|>"},
	{Family: "Llama 3", Text: "<|end_header_id|>"},
	{Family: "Llama 3", Text: "<|eot_id|>"},
	{Family: "Llama 3", Text: "<|eom_id|>"},
	{Family: "Llama 3", Text: "<|python_tag|>"},
	{Family: "Llama 4", Text: "<|header_start|>"},
	{Family: "Llama 4", Text: "<|header_end|>"},
	{Family: "Llama 4", Text: "<|eot|>"},
	{Family: "Llama 4", Text: "<|eom|>"},

	{Family: "Mistral", Text: "[TOOL_CALLS]", Kind: Bracket},
	{Family: "Mistral", Text: "[AVAILABLE_TOOLS]", Kind: Bracket},
	{Family: "Mistral", Text: "[/AVAILABLE_TOOLS]", Kind: Bracket},
	{Family: "Mistral", Text: "[TOOL_RESULTS]", Kind: Bracket},
	{Family: "Mistral", Text: "[/TOOL_RESULTS]", Kind: Bracket},
	{Family: "Mistral", Text: "[TOOL_CONTENT]", Kind: Bracket},
	{Family: "Mistral", Text: "[/TOOL_CONTENT]", Kind: Bracket},
	{Family: "Mistral", Text: "[SYSTEM_PROMPT]", Kind: Bracket},
	{Family: "Mistral", Text: "[/SYSTEM_PROMPT]", Kind: Bracket},
	{Family: "Mistral", Text: "[THINK]", Kind: Bracket},
	{Family: "Mistral", Text: "[/THINK]", Kind: Bracket},
	{Family: "Mistral", Text: "[CALL_ID]", Kind: Bracket},
	{Family: "Mistral", Text: "[IMG_BREAK]", Kind: Bracket},
	{Family: "Mistral", Text: "[IMG_END]", Kind: Bracket},
	{Family: "Mistral", Text: "[BEGIN_AUDIO]", Kind: Bracket},

	{Family: "Gemma", Text: "<start_of_turn>"},
	{Family: "Gemma", Text: "<end_of_turn>"},
	{Family: "Gemma", Text: "<start_of_image>"},
	{Family: "Gemma", Text: "<end_of_image>"},
	{Family: "Gemma", Text: "<bos>"},
	{Family: "Gemma", Text: "<eos>"},
	{Family: "Gemma", Text: "<pad>"},
	{Family: "Gemma", Text: "<unused0>", Why: "any number"},

	{Family: "Phi", Text: "<|system|>"},
	{Family: "Phi", Text: "<|user|>"},
	{Family: "Phi", Text: "<|assistant|>"},
	{Family: "Phi", Text: "<|end_of_turn|>"},
	{Family: "Phi", Text: "<|tool|>"},

	{Family: "Qwen", Text: "<tool_call>"},
	{Family: "Qwen", Text: "</tool_call>"},
	{Family: "Qwen", Text: "<tool_response>"},
	{Family: "Qwen", Text: "</tool_response>"},
	{Family: "Qwen", Text: "<|object_ref_start|>"},
	{Family: "Qwen", Text: "<|vision_start|>"},
	{Family: "Qwen", Text: "<think>"},
	{Family: "Qwen", Text: "</think>"},

	{Family: "DeepSeek", Text: "<|begin_of_sentence|>"},
	{Family: "DeepSeek", Text: "<|end_of_sentence|>"},
	{Family: "DeepSeek", Text: "<|User|>"},
	{Family: "DeepSeek", Text: "<|Assistant|>"},
	{Family: "DeepSeek", Text: "<|tool_calls_begin|>"},
	{Family: "DeepSeek", Text: "<|tool_outputs_begin|>"},

	{Family: "Command-R", Text: "<BOS_TOKEN>"},
	{Family: "Command-R", Text: "<EOS_TOKEN>"},
	{Family: "Command-R", Text: "<|START_OF_TURN_TOKEN|>"},
	{Family: "Command-R", Text: "<|END_OF_TURN_TOKEN|>"},
	{Family: "Command-R", Text: "<|SYSTEM_TOKEN|>"},
	{Family: "Command-R", Text: "<|USER_TOKEN|>"},
	{Family: "Command-R", Text: "<|CHATBOT_TOKEN|>"},
	{Family: "Granite", Text: "<|start_of_role|>"},
	{Family: "Granite", Text: "<|end_of_role|>"},
	{Family: "Granite", Text: "<|tool_call|>"},
	{Family: "GLM", Text: "[gMASK]", Kind: Bracket},
	{Family: "GLM", Text: "[sMASK]", Kind: Bracket},
	{Family: "GLM", Text: "<sop>"},
	{Family: "GLM", Text: "<eop>"},
	{Family: "GLM", Text: "<|observation|>"},
	{Family: "Kimi", Text: "<|im_user|>"},
	{Family: "Kimi", Text: "<|im_assistant|>"},
	{Family: "Kimi", Text: "<|im_system|>"},
	{Family: "Kimi", Text: "<|im_middle|>"},
	{Family: "Kimi", Text: "<|tool_calls_section_begin|>"},
	{Family: "Kimi", Text: "[BOS]", Kind: Bracket},
	{Family: "Kimi", Text: "[EOS]", Kind: Bracket},
	{Family: "Falcon", Text: "<|im_end|>"},
	{Family: "InternLM", Text: "<eoh>"},
	{Family: "InternLM", Text: "<eoa>"},
	{Family: "InternLM", Text: "<eosys>"},
	{Family: "InternLM", Text: "[UNUSED_TOKEN_145]", Kind: Bracket, Why: "any number"},
	{Family: "SmolVLM", Text: "<end_of_utterance>"},

	{Family: "tools in text", Text: "<function_calls>"},
	{Family: "tools in text", Text: "</function_calls>"},
	{Family: "tools in text", Text: "<function_results>"},
	{Family: "tools in text", Text: "</function_results>"},
	{Family: "tools in text", Text: "<tool_result>"},
	{Family: "tools in text", Text: "</tool_result>"},
	{Family: "tools in text", Text: "<tool_calls>"},
	{Family: "tools in text", Text: "</tool_calls>"},
	{Family: "roles in text", Text: "<system>"},
	{Family: "roles in text", Text: "</system>"},
	{Family: "roles in text", Text: "<system_prompt>"},
	{Family: "roles in text", Text: "</system_prompt>"},
	{Family: "roles in text", Text: "<assistant>"},
	{Family: "roles in text", Text: "</assistant>"},

	{Family: "Alpaca", Text: "### Instruction:", Kind: Heading},
	{Family: "Alpaca", Text: "### System:", Kind: Heading},
	{Family: "Alpaca", Text: "### Response:", Kind: Heading, Action: RemoveMCP, Why: whyHeading},
	{Family: "Alpaca", Text: "### Input:", Kind: Heading, Action: RemoveMCP, Why: whyHeading},
	{Family: "Vicuna", Text: "### Human:", Kind: Heading},
	{Family: "Vicuna", Text: "### Assistant:", Kind: Heading},
	{Family: "Vicuna", Text: "### User:", Kind: Heading, Action: RemoveMCP, Why: whyHeading},
	{Family: "any", Text: "SYSTEM:", Kind: Line, Why: whyLine},
	{Family: "Claude 2", Text: "Human:", Kind: Line, Exact: true, Action: RemoveMCP, Why: whyChatLog},
	{Family: "Claude 2", Text: "Assistant:", Kind: Line, Exact: true, Action: RemoveMCP, Why: whyChatLog},
}
